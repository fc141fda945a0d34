import type { MicrovmHost } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { RunningWorker } from '@svc/worker';
import type { WorkerSummary } from '../service-record.ts';
import type { ComponentContext } from './component.ts';
import { workerId } from './generated-settings.ts';
import type { ControlPlaneAddress } from './runtime-host.ts';

const CLOSE_TIMEOUT_MS = 60_000;

/** A running worker. */
export interface StartedWorker {
  readonly worker: RunningWorker;
  readonly summary: WorkerSummary;
}

/**
 * Starts the worker of this machine and waits until it has registered with the control plane. `onDrainOrder` is called when an
 * operator of the fleet wants it to end.
 */
export async function startLocalWorker(
  { config, logger, secret, shutdown, signal, keepSandboxes }: ComponentContext,
  controlPlane: ControlPlaneAddress,
  microvms: MicrovmHost,
  onDrainOrder?: () => void,
): Promise<StartedWorker> {
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
    ...(onDrainOrder === undefined ? {} : { onDrainOrder }),
  });
  shutdown.add({
    name: 'worker',
    phase: 'end',
    deadlineMs: CLOSE_TIMEOUT_MS,
    run: () => worker.close({ keepSandboxes: keepSandboxes() }),
  });
  // The worker retries its registration forever, so an aborted start must not wait for it.
  await untilAborted(worker.ready, signal);
  const { accelerator } = microvms;
  return { worker, summary: { worker_id: id, url: worker.url, accelerator } };
}
