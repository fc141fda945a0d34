import { join } from 'node:path';
import { loadServiceConfig } from '@svc/config';
import type { SvcClient } from '@svc/sdk';
import { NO_DRAIN } from '@svc/service-kit/process';
import type { Progress } from '../output/progress.ts';
import { lockDataDirectory } from '../service/data-lock.ts';
import { servicePaths } from '../service/paths.ts';
import { openServiceLog } from '../service/service-log.ts';
import { RecordKeeper } from '../service/service-record.ts';
import { localClient } from '../service/start/control-plane.ts';
import { operatorAccount } from '../service/start/operator-account.ts';
import { startService } from '../service/start/start-service.ts';
import { NO_DRAIN_PLAN } from '../service/stop/drain-plan.ts';
import { endMsOf } from '../service/stop/worker-task.ts';

/** The user's settings that the service inherits; none of them leads to the data of another service. */
const INHERITED = ['HOME', 'XDG_CACHE_HOME', 'SVC_IMAGE_DIR'];

export interface PrivateServiceOptions {
  /** An empty directory, which the caller removes after `cleanUp`. */
  readonly directory: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Receives the functions that stop everything started here. */
  readonly cleanUp: AsyncDisposableStack;
}

/**
 * Starts a service only for the demo and returns a client with its account. It has its own data, ports, account and
 * egress rules, and shares only the images with other services on the machine.
 */
export async function startPrivateService(options: PrivateServiceOptions): Promise<SvcClient> {
  const { directory, settings, progress, signal, cleanUp } = options;
  const inherited = INHERITED.map((name) => [name, process.env[name]]);
  const config = loadServiceConfig({
    ...Object.fromEntries(inherited),
    SVC_DATA_DIR: join(directory, 'data'),
    SVC_LISTEN: 'localhost:0',
    SVC_POOL: 'standard=1',
    ...settings,
  });
  const paths = servicePaths(config.dataDir);
  const lock = await lockDataDirectory(paths);
  cleanUp.defer(() => lock.release());
  const log = openServiceLog(paths.log, config.logLevel, (line) => progress.line(line));
  cleanUp.defer(() => log.close());
  // Lets `svc down` find the service if this process is killed.
  const record = await RecordKeeper.open(paths.record, 'up', NO_DRAIN, endMsOf(config));
  cleanUp.defer(() => record.remove());
  const keepSandboxes = () => false;
  const { logger } = log;
  const context = { config, paths, logger, progress, signal, keepSandboxes };
  const service = await startService({ ...context, drain: NO_DRAIN_PLAN });
  cleanUp.defer(async () => {
    await progress.step('stop', () => service.shutdown.run('the demo is over'));
  });
  const { api_key: apiKey } = await operatorAccount(paths, service);
  const client = localClient(service, apiKey);
  cleanUp.defer(() => client.close());
  return client;
}
