import { type Config, loadServiceConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { countBuffersAsHeap, Shutdown } from '@svc/service-kit/process';
import { ignoreOutputErrors } from '../../process-lifetime.ts';
import { lockDataDirectory } from '../data-lock.ts';
import { servicePaths } from '../paths.ts';
import { RecordKeeper, type ServiceComponent, type ServiceRecord } from '../service-record.ts';
import type { ComponentContext } from '../start/component.ts';
import { configuredDrain } from '../stop/drain-plan.ts';
import { endMsOf } from '../stop/worker-task.ts';
import { END_SANDBOXES_SIGNAL, KEEP_SANDBOXES_SIGNAL, StopSignals } from '../stop-signals.ts';

/** The context of a component that runs alone. */
export interface FleetContext extends ComponentContext {
  /** Ends the sandboxes of this machine in order, and then the component. */
  readonly endSandboxes: (reason: string) => void;
}

export type FleetComponent = Exclude<ServiceComponent, 'up'>;

/** Longer than the usual interval between the health checks of load balancers. */
const NOTICE_SECONDS = 5;

/**
 * Runs one component of a fleet in this process until a signal stops it, logging to standard output. `start` returns
 * the fields of the component for `svc status`. Resolves with the exit code.
 */
export async function runComponent(
  component: FleetComponent,
  start: (context: FleetContext) => Promise<Partial<ServiceRecord>>,
): Promise<number> {
  ignoreOutputErrors();
  countBuffersAsHeap();
  const config = loadServiceConfig();
  const paths = servicePaths(config.dataDir);
  const logger = createLogger({ level: config.logLevel });
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(paths);
  cleanUp.defer(() => lock.release());
  const times = configuredDrain(config, NOTICE_SECONDS);
  const endMs = component === 'worker' ? endMsOf(config) : undefined;
  const record = await RecordKeeper.open(paths.record, component, times, endMs);
  cleanUp.defer(() => record.remove());
  const stop = cleanUp.use(new StopSignals((signal) => keepsSandboxes(signal, config)));
  const shutdown = new Shutdown(logger);
  stop.hurries(shutdown);
  let isReady = false;
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  // Work in a sandbox that is about to end would end with it.
  const applies = () => isReady && (component !== 'worker' || keepSandboxes());
  const drain = { times, applies };
  const { signal } = stop;
  try {
    const endSandboxes = (reason: string) => stop.endSandboxes(reason);
    const context = { config, paths, logger, shutdown, signal, keepSandboxes, drain, endSandboxes };
    await record.update({ ...(await start(context)), state: 'ready' });
    isReady = true;
  } catch (error) {
    await shutdown.run('the start failed');
    if (stop.signal.aborted) return 1;
    throw error;
  }
  const { reason } = await stop.requested;
  const failed = await shutdown.run(reason);
  return failed.length === 0 ? 0 : 1;
}

/** Whether a worker leaves its sandboxes running when it gets this signal. */
function keepsSandboxes(signal: NodeJS.Signals, { workerOnSigterm }: Config): boolean {
  if (signal === END_SANDBOXES_SIGNAL) return false;
  return signal === KEEP_SANDBOXES_SIGNAL || workerOnSigterm === 'keep';
}
