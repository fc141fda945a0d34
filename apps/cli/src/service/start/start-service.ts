import { Shutdown } from '@svc/service-kit/process';
import type { Progress } from '../../output/progress.ts';
import type { WorkerSummary } from '../service-record.ts';
import { type StartedControlPlane, startControlPlanePiece } from './control-plane.ts';
import { openHost } from './host.ts';
import { clusterSecret } from './kept-values.ts';
import type { Piece } from './piece.ts';
import { together } from './together.ts';
import { startWorkerPiece } from './worker.ts';

export interface StartOptions extends Omit<Piece, 'secret' | 'shutdown'> {
  readonly progress: Progress;
}

/** A service whose pieces all run. */
export interface StartedService extends StartedControlPlane {
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
  const piece = { ...options, secret: await clusterSecret(config), shutdown };
  try {
    const [controlPlane, host] = await together(
      options.signal,
      (signal) =>
        progress.step(
          'control plane',
          () => startControlPlanePiece({ ...piece, signal }),
          ({ localUrl }) => localUrl,
        ),
      (signal) => openHost({ ...piece, signal }),
    );
    const { localUrl: url, tls } = controlPlane;
    const worker = await progress.step(
      'worker',
      () => startWorkerPiece(piece, { url, ca: tls.ca }, host),
      ({ worker_id }) => worker_id,
    );
    return { ...controlPlane, workers: [worker], shutdown };
  } catch (error) {
    await shutdown.run('the start failed');
    throw error;
  }
}
