import { type Config, publicUrl } from '@svc/service-kit/config';
import type { Logger } from '@svc/service-kit/logging';
import type { Progress } from '../../output/progress.ts';
import type { ServicePlaces } from '../places.ts';
import { Closers } from './closers.ts';
import { type Database, openDatabase } from './database.ts';
import { readyImages } from './images.ts';
import { clusterSecret, workerId } from './kept-values.ts';
import { openTls, type ServiceTls } from './tls.ts';

/** Deadlines of the pieces' ends, in milliseconds. */
const END_MS = { worker: 60_000, controlPlane: 15_000, database: 30_000 } as const;

export interface StartOptions {
  readonly config: Config;
  readonly places: ServicePlaces;
  readonly logger: Logger;
  readonly progress: Progress;
  /** Stops a start that is under way. */
  readonly signal: AbortSignal;
}

/** A service whose pieces all run. */
export interface StartedService {
  readonly baseUrl: string;
  readonly runtimeUrl?: string;
  readonly tls: ServiceTls;
  readonly database: Database;
  readonly closers: Closers;
}

/**
 * Starts everything on this machine, over the same internal HTTPS as a fleet uses. What does not
 * wait for another piece starts beside it. A start that fails leaves nothing running.
 */
export async function startService(options: StartOptions): Promise<StartedService> {
  const closers = new Closers(options.logger);
  try {
    return await startPieces(options, closers);
  } catch (error) {
    await closers.closeAll({ reason: 'the start failed', keepSandboxes: true });
    throw error;
  }
}

async function startPieces(options: StartOptions, closers: Closers): Promise<StartedService> {
  const { places, progress, signal } = options;
  const config = { ...options.config, clusterSecret: await clusterSecret(options.config) };
  const all = { ...options, config };
  const [front, host] = await together(
    signal,
    (signal) => startFront({ ...all, signal }, closers),
    (signal) => openHost({ ...all, signal }, closers),
  );
  const { startWorker } = await import('@svc/worker');
  await progress.step(
    'worker',
    async () => {
      const worker = await startWorker({
        config,
        logger: options.logger.child({ component: 'worker' }),
        microvms: host,
        controlPlane: { url: front.baseUrl, ca: front.tls.ca },
        workerId: await workerId(config),
        listen: config.workerListen,
        signal,
      });
      closers.add({
        name: 'worker',
        deadlineMs: END_MS.worker,
        close: ({ keepSandboxes }) => worker.close({ keepSandboxes }),
      });
      await worker.ready;
    },
    () => `${host.accelerator.toUpperCase()}, data in ${places.dataDir}`,
  );
  return { ...front, closers };
}

/** The database, then the control plane on it. */
async function startFront(
  { config, places, logger, progress, signal }: StartOptions,
  closers: Closers,
) {
  const [database, tls, { startControlPlane }] = await Promise.all([
    progress.step(
      'database',
      () => openDatabase(config, logger),
      ({ kind }) => `PostgreSQL, ${kind}`,
    ),
    openTls(config, places),
    import('@svc/control-plane'),
  ]);
  closers.add({ name: 'database', deadlineMs: END_MS.database, close: () => database.close() });
  const controlPlane = await progress.step(
    'control plane',
    () =>
      startControlPlane({
        config,
        logger: logger.child({ component: 'control-plane' }),
        tls: tls.server,
        database: { url: database.url },
        signal,
      }),
    ({ url }) => url,
  );
  closers.add({
    name: 'control plane',
    deadlineMs: END_MS.controlPlane,
    close: () => controlPlane.close(),
  });
  return { baseUrl: controlPlane.url, tls, database };
}

/** The images, then the host that restores micro-VMs from them. */
async function openHost(
  { config, places, logger, progress, signal }: StartOptions,
  closers: Closers,
) {
  await readyImages(config, progress, signal);
  const { openMicrovmHost } = await import('@svc/microvm');
  return progress.step(
    'micro-VMs',
    () =>
      openMicrovmHost(
        {
          dataDir: places.dataDir,
          imageDir: config.imageDir,
          logger: logger.child({ component: 'microvm' }),
        },
        signal,
      ),
    ({ accelerator }) => accelerator,
  );
}

/**
 * Runs both side by side; a failure of one aborts the other. Both have settled when this settles, so
 * that nothing starts behind the back of the clean-up.
 */
async function together<A, B>(
  signal: AbortSignal,
  first: (signal: AbortSignal) => Promise<A>,
  second: (signal: AbortSignal) => Promise<B>,
): Promise<[A, B]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const abortOther = (error: unknown): never => {
    failed.abort(error);
    throw error;
  };
  const a = first(either).catch(abortOther);
  const b = second(either).catch(abortOther);
  await Promise.allSettled([a, b]);
  if (failed.signal.aborted) throw failed.signal.reason;
  return [await a, await b];
}
