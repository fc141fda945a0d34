import { join } from 'node:path';

/** The files of a service on this machine, below its data directory. */
export interface ServicePlaces {
  readonly dataDir: string;
  /** Held by the kernel for the service that runs on this data directory. */
  readonly lock: string;
  /** What the running service says of itself. */
  readonly record: string;
  readonly log: string;
  /** What a detached service shows while it starts. */
  readonly console: string;
  readonly tls: string;
  readonly outbox: string;
}

/** Where a service keeps its files. */
export function servicePlaces(dataDir: string): ServicePlaces {
  return {
    dataDir,
    lock: join(dataDir, 'service.lock'),
    record: join(dataDir, 'service.json'),
    log: join(dataDir, 'service.log'),
    console: join(dataDir, 'console.log'),
    tls: join(dataDir, 'tls'),
    outbox: join(dataDir, 'outbox'),
  };
}
