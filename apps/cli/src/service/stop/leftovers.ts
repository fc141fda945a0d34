import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import type { Progress } from '../../output/progress.ts';
import type { ServicePaths } from '../paths.ts';

const ADOPT_TIMEOUT_MS = 60_000;

/**
 * Stops the remains of a crashed service on this machine: its sandboxes with their namespaces, unless `keepSandboxes`
 * is set, and its database server. The caller holds the lock on the data directory.
 */
export async function endLeftovers(
  config: Config,
  paths: ServicePaths,
  progress: Progress,
  { keepSandboxes }: { readonly keepSandboxes: boolean },
): Promise<void> {
  if (!keepSandboxes && existsSync(paths.vms)) {
    const ended = await endMicrovms(config, paths);
    if (ended > 0) progress.line(`ended ${ended} micro-VM(s) that were left running`);
  }
  if (existsSync(join(paths.dataDir, 'postgres/postmaster.pid'))) {
    const { EmbeddedPostgres } = await import('@svc/store');
    const left = await EmbeddedPostgres.start({
      dataDirectory: paths.dataDir,
      duringRestore: true,
    });
    await left.close();
    progress.line('ended the embedded PostgreSQL that was left running');
  }
}

async function endMicrovms({ imageDir }: Config, { dataDir }: ServicePaths): Promise<number> {
  const { listImages, openMicrovmHost } = await import('@svc/microvm');
  // Without an image, no micro-VM can have been created.
  if ((await listImages(imageDir)).length === 0) return 0;
  const logger = createLogger({ level: 'warn', pretty: true, destination: process.stderr });
  const signal = AbortSignal.timeout(ADOPT_TIMEOUT_MS);
  const host = await openMicrovmHost({ dataDir, imageDir, logger }, signal);
  try {
    return (await host.adopt(signal)).length;
  } finally {
    await host.close({ keepVms: false });
  }
}
