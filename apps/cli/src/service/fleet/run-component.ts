import { loadConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { ignoreOutputErrors } from '../../process-lifetime.ts';
import { lockDataDirectory } from '../data-lock.ts';
import { servicePaths } from '../paths.ts';
import { RecordKeeper, type ServiceRecord } from '../service-record.ts';
import type { ComponentContext } from '../start/component.ts';
import { StopSignals } from '../stop-signals.ts';

/** The context of a component before its cluster secret is known. */
export type FleetContext = Omit<ComponentContext, 'secret'>;

/**
 * Runs one component of a fleet in this process until a signal stops it, logging to standard output. `start` returns
 * the fields of the component for `svc status`. Resolves with the exit code.
 */
export async function runComponent(
  start: (context: FleetContext) => Promise<Partial<ServiceRecord>>,
): Promise<number> {
  ignoreOutputErrors();
  const config = loadConfig();
  const paths = servicePaths(config.dataDir);
  const logger = createLogger({ level: config.logLevel });
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(paths);
  cleanUp.defer(() => lock.release());
  const record = await RecordKeeper.open(paths.record);
  cleanUp.defer(() => record.remove());
  const stop = cleanUp.use(new StopSignals());
  const shutdown = new Shutdown(logger);
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  try {
    const context = { config, paths, logger, shutdown, signal: stop.signal, keepSandboxes };
    await record.update({ ...(await start(context)), state: 'ready' });
  } catch (error) {
    await shutdown.run('the start failed');
    if (stop.signal.aborted) return 1;
    throw error;
  }
  const { reason } = await stop.requested;
  const failed = await shutdown.run(reason);
  return failed.length === 0 ? 0 : 1;
}
