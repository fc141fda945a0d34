import type { MicrovmHost } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { WorkerSummary } from '../service-record.ts';
import { workerId } from './kept-values.ts';
import type { Piece } from './piece.ts';

const END_MS = 60_000;

/** Starts the worker of this machine and waits until a control plane has taken it on. */
export async function startWorkerPiece(
  { config, logger, secret, shutdown, signal, keepSandboxes }: Piece,
  controlPlane: { readonly url: string; readonly ca: string | undefined },
  microvms: MicrovmHost,
): Promise<WorkerSummary> {
  const [{ startWorker }, id] = await Promise.all([import('@svc/worker'), workerId(config)]);
  const worker = await startWorker({
    config,
    clusterSecret: secret,
    logger: logger.child({ component: 'worker' }),
    microvms,
    controlPlane,
    workerId: id,
    listen: config.workerListen,
    signal,
  });
  shutdown.add({
    name: 'worker',
    phase: 'end',
    deadlineMs: END_MS,
    run: () => worker.close({ keepSandboxes: keepSandboxes() }),
  });
  // A worker never stops looking for its control plane, but an interrupted start must not wait for it.
  await untilAborted(worker.ready, signal);
  return { worker_id: id, url: worker.url, accelerator: microvms.accelerator };
}
