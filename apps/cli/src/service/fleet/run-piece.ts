import { loadConfig } from '@svc/config';
import { createLogger } from '@svc/service-kit/logging';
import { Shutdown } from '@svc/service-kit/process';
import { outliveReaders } from '../../output/outlive-readers.ts';
import { servicePlaces } from '../places.ts';
import { RecordKeeper, type ServiceRecord } from '../service-record.ts';
import { lockDataDirectory } from '../start/data-lock.ts';
import type { Piece } from '../start/piece.ts';
import { StopSignals } from '../stop-signals.ts';

/** What a piece of a fleet starts with. */
type PieceContext = Omit<Piece, 'secret'>;

/**
 * Runs one piece of a fleet in this process until a signal ends it, logging to standard output.
 * `start` gives what `svc status` shows of it.
 * Resolves with the exit code.
 */
export async function runPiece(
  start: (context: PieceContext) => Promise<Partial<ServiceRecord>>,
): Promise<number> {
  outliveReaders();
  const config = loadConfig();
  const places = servicePlaces(config.dataDir);
  const logger = createLogger({ level: config.logLevel });
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(places);
  cleanUp.defer(() => lock.release());
  const record = await RecordKeeper.open(places.record);
  cleanUp.defer(() => record.remove());
  const stop = cleanUp.use(new StopSignals());
  const shutdown = new Shutdown(logger);
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  try {
    const piece = { config, places, logger, shutdown, signal: stop.signal, keepSandboxes };
    await record.update({ ...(await start(piece)), state: 'ready' });
  } catch (error) {
    await shutdown.run('the start failed');
    if (stop.signal.aborted) return 1;
    throw error;
  }
  const { reason } = await stop.wished;
  const failed = await shutdown.run(reason);
  return failed.length === 0 ? 0 : 1;
}
