import type { MicrovmHost } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { ComponentIdentity } from '@svc/service-kit/tokens';
import type { RunningWorker } from '@svc/worker';
import type { WorkerSummary } from '../service-record.ts';
import { workerTask } from '../stop/worker-task.ts';
import type { ComponentContext } from './component.ts';
import type { ControlPlaneAddress } from './runtime-host.ts';

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
  { config, logger, shutdown, signal, keepSandboxes }: ComponentContext,
  identity: ComponentIdentity,
  controlPlane: ControlPlaneAddress,
  microvms: MicrovmHost,
  onDrainOrder?: () => void,
): Promise<StartedWorker> {
  const { startWorker } = await import('@svc/worker');
  const worker = await startWorker({
    config,
    identity,
    logger: logger.child({ component: 'worker' }),
    microvms,
    controlPlane,
    listen: config.workerListen,
    signal,
    ...(onDrainOrder === undefined ? {} : { onDrainOrder }),
  });
  shutdown.add(workerTask(config, keepSandboxes, (options) => worker.close(options)));
  // The worker retries its registration forever, so an aborted start must not wait for it.
  await untilAborted(worker.ready, signal);
  const { accelerator } = microvms;
  return { worker, summary: { worker_id: identity.id, url: worker.url, accelerator } };
}
