import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import type { SvcClient } from '@svc/sdk';
import { openServiceLog } from '../output/log-sink.ts';
import type { Progress } from '../output/progress.ts';
import { servicePlaces } from '../service/places.ts';
import { RecordKeeper } from '../service/service-record.ts';
import { lockDataDirectory } from '../service/start/data-lock.ts';
import { localClient } from '../service/start/local-client.ts';
import { operatorAccount } from '../service/start/operator-account.ts';
import { startService } from '../service/start/start-service.ts';

/** What a private service takes over from its user's settings; nothing that leads to data of another service. */
const INHERITED = ['HOME', 'XDG_CACHE_HOME', 'SVC_IMAGE_DIR'];

export interface PrivateServiceOptions {
  /** Empty; removed by whoever made it, once `cleanUp` is done. */
  readonly directory: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Ends all that was started. */
  readonly cleanUp: AsyncDisposableStack;
}

/**
 * Starts a service that nobody else uses, beside any that runs: data, ports, account and what it may reach are its
 * own, only the images are shared. Gives a client with its account.
 */
export async function startPrivateService(options: PrivateServiceOptions): Promise<SvcClient> {
  const { directory, settings, progress, signal, cleanUp } = options;
  const inherited = INHERITED.map((name) => [name, process.env[name]]);
  const config = loadConfig({
    ...Object.fromEntries(inherited),
    SVC_DATA_DIR: join(directory, 'data'),
    SVC_LISTEN: 'localhost:0',
    SVC_POOL: 'standard=1',
    ...settings,
  });
  const places = servicePlaces(config.dataDir);
  const lock = await lockDataDirectory(places);
  cleanUp.defer(() => lock.release());
  const log = openServiceLog(places.log, config.logLevel, (line) => progress.line(line));
  cleanUp.defer(() => log.close());
  // So that `svc down` finds it, should this process be killed.
  const record = await RecordKeeper.open(places.record);
  cleanUp.defer(() => record.remove());
  const keepSandboxes = () => false;
  const { logger } = log;
  const service = await startService({ config, places, logger, progress, signal, keepSandboxes });
  cleanUp.defer(async () => {
    await progress.step('end', () => service.shutdown.run('the demo is over'));
  });
  const { api_key: apiKey } = await operatorAccount(places, service);
  const client = localClient(service, apiKey);
  cleanUp.defer(() => client.close());
  return client;
}
