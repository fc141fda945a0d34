import { join } from 'node:path';

/** The files of a service, in its data directory. */
export interface ServicePaths {
  readonly dataDir: string;
  /** Locked by the process that serves this data directory. */
  readonly lock: string;
  /** The record that this process writes about itself. */
  readonly record: string;
  readonly log: string;
  /** Console output of a detached service. */
  readonly console: string;
  readonly tls: string;
  readonly outbox: string;
  /** Contains one directory per VM. */
  readonly vms: string;
}

export function servicePaths(dataDir: string): ServicePaths {
  return {
    dataDir,
    lock: join(dataDir, 'service.lock'),
    record: join(dataDir, 'service.json'),
    log: join(dataDir, 'service.log'),
    console: join(dataDir, 'console.log'),
    tls: join(dataDir, 'tls'),
    outbox: join(dataDir, 'outbox'),
    vms: join(dataDir, 'vms'),
  };
}
