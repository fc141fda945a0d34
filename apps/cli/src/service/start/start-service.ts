import { Shutdown } from '@svc/service-kit/process';
import type { Progress } from '../../output/progress.ts';
import type { WorkerSummary } from '../service-record.ts';
import { type StartedControlPlane, startControlPlanePiece } from './control-plane.ts';
import { openHost } from './host.ts';
import { clusterSecret } from './kept-values.ts';
import type { Piece } from './piece.ts';
import { checkPorts, publicListeners } from './ports.ts';
import { type ControlPlaneAddress, startRuntimePiece } from './runtime.ts';
import { openTls } from './tls.ts';
import { together } from './together.ts';
import { startWorkerPiece } from './worker.ts';

export interface StartOptions extends Omit<Piece, 'secret' | 'shutdown'> {
  readonly progress: Progress;
}

/** A service whose pieces all run. */
export interface StartedService extends StartedControlPlane {
  /** Where the public reaches the WebSockets of sessions. */
  readonly runtimeUrl: string;
  readonly workers: readonly WorkerSummary[];
  /** Ends every piece in order. */
  readonly shutdown: Shutdown;
}

/**
 * Starts everything on this machine, over the same internal HTTPS as a fleet uses. What does not
 * wait for another piece starts beside it. A start that fails leaves no piece running.
 */
export async function startService(options: StartOptions): Promise<StartedService> {
  const { config, progress } = options;
  const shutdown = new Shutdown(options.logger);
  await checkPorts(publicListeners(config));
  const tls = await openTls(config, options.places);
  const piece = { ...options, secret: await clusterSecret(config), shutdown };
  const address = Promise.withResolvers<ControlPlaneAddress>();
  // A start that fails before the control plane is there leaves nobody who waits for it.
  address.promise.catch(() => undefined);
  try {
    // First, for the control plane tells customers the address that it has.
    const { runtimeUrl } = await progress.step(
      'runtime host',
      () => startRuntimePiece(piece, tls, address.promise),
      ({ localUrl }) => localUrl,
    );
    const served = { ...piece, config: { ...config, runtimeUrl } };
    const [controlPlane, host] = await together(
      options.signal,
      (signal) =>
        progress.step(
          'control plane',
          () => startControlPlanePiece({ ...served, signal }, tls),
          ({ localUrl }) => localUrl,
        ),
      (signal) => openHost({ ...piece, signal }),
    );
    const where = { url: controlPlane.localUrl, ca: tls.ca };
    address.resolve(where);
    const worker = await progress.step(
      'worker',
      () => startWorkerPiece(piece, where, host),
      ({ worker_id }) => worker_id,
    );
    return { ...controlPlane, runtimeUrl, workers: [worker], shutdown };
  } catch (error) {
    address.reject(error);
    await shutdown.run('the start failed');
    throw error;
  }
}
