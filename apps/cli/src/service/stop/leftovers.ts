import { join } from 'node:path';
import type { Config } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { exists } from '../../files.ts';
import type { Progress } from '../../output/progress.ts';
import type { ServicePlaces } from '../places.ts';

const ADOPT_MS = 60_000;

/**
 * Ends what a service that crashed has left on this machine: its sandboxes with their namespaces, and
 * its database server. With `keepSandboxes` the sandboxes stay. The caller holds the lock of the data directory.
 */
export async function endLeftovers(
  config: Config,
  places: ServicePlaces,
  progress: Progress,
  { keepSandboxes }: { readonly keepSandboxes: boolean },
): Promise<void> {
  if (!keepSandboxes && (await exists(join(places.dataDir, 'vms')))) {
    const ended = await endMicrovms(config, places);
    if (ended > 0) progress.line(`ended ${ended} micro-VM(s) that were left running`);
  }
  if (await exists(join(places.dataDir, 'postgres/postmaster.pid'))) {
    const { EmbeddedPostgres } = await import('@svc/store');
    const left = await EmbeddedPostgres.start({ dataDirectory: places.dataDir });
    await left.close();
    progress.line('ended the embedded PostgreSQL that was left running');
  }
}

async function endMicrovms({ imageDir }: Config, { dataDir }: ServicePlaces): Promise<number> {
  const { listImages, openMicrovmHost } = await import('@svc/microvm');
  // Without an image no micro-VM was ever made here.
  if ((await listImages(imageDir)).length === 0) return 0;
  const logger = createLogger({ level: 'warn', pretty: true, destination: process.stderr });
  const signal = AbortSignal.timeout(ADOPT_MS);
  const host = await openMicrovmHost({ dataDir, imageDir, logger }, signal);
  try {
    return (await host.adopt(signal)).length;
  } finally {
    await host.close({ keepVms: false });
  }
}
