import { type Config, loadConfig } from '@svc/service-kit/config';
import { createLogger, type Logger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { type ServicePlaces, servicePlaces } from '../places.ts';
import { lockDataDirectory } from '../start/data-lock.ts';
import { StopSignals } from '../stop-signals.ts';

/** What a piece of a fleet starts with. It adds its ends to `shutdown`. */
export interface PieceContext {
  readonly config: Config;
  readonly places: ServicePlaces;
  readonly logger: Logger;
  readonly shutdown: Shutdown;
  readonly signal: AbortSignal;
  readonly keepSandboxes: () => boolean;
}

/**
 * Runs one piece of a fleet in this process until a signal ends it, logging to standard output.
 * Resolves with the exit code.
 */
export async function runPiece(start: (context: PieceContext) => Promise<void>): Promise<number> {
  const config = loadConfig();
  const places = servicePlaces(config.dataDir);
  const logger = createLogger({ level: config.logLevel });
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(places);
  cleanUp.defer(() => lock.release());
  const stop = cleanUp.use(new StopSignals());
  const shutdown = new Shutdown(logger);
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  try {
    await start({ config, places, logger, shutdown, signal: stop.signal, keepSandboxes });
  } catch (error) {
    await shutdown.run('the start failed');
    if (stop.signal.aborted) return 1;
    throw error;
  }
  const { reason } = await stop.wished;
  const failed = await shutdown.run(reason);
  return failed.length === 0 ? 0 : 1;
}
