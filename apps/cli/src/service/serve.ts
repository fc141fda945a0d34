import { readdir } from 'node:fs/promises';
import type { Config } from '@svc/config';
import { countBuffersAsHeap } from '@svc/service-kit/process';
import type { Progress } from '../output/progress.ts';
import { VERSION } from '../version.ts';
import { lockDataDirectory } from './data-lock.ts';
import { servicePaths } from './paths.ts';
import { openServiceLog } from './service-log.ts';
import { RecordKeeper, type ServiceRecord } from './service-record.ts';
import { banner } from './start/banner.ts';
import { operatorAccount } from './start/operator-account.ts';
import { selfCheck } from './start/self-check.ts';
import { type StartedService, type StartOptions, startService } from './start/start-service.ts';
import { configuredDrain } from './stop/drain-plan.ts';
import { endMsOf } from './stop/worker-task.ts';
import { StopSignals } from './stop-signals.ts';

export interface ServeOptions {
  readonly config: Config;
  /** Prefix of the commands that the banner suggests, so that they find this service. */
  readonly prefix: string;
  readonly progress: Progress;
  /** Whether nobody sees the output once the service is ready: warnings go to the log alone from then on. */
  readonly isDetached: boolean;
  /** Called when the service is ready. */
  readonly onReady: (record: ServiceRecord) => void;
}

/**
 * Starts the service in this process, runs the self-check, and serves until a signal stops it. Resolves with the exit
 * code, which is 0 after a clean shutdown.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const { config, prefix, progress, isDetached, onReady } = options;
  countBuffersAsHeap();
  const paths = servicePaths(config.dataDir);
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(paths);
  cleanUp.defer(() => lock.release());
  const log = openServiceLog(paths.log, config.logLevel, (line) => progress.line(line));
  cleanUp.defer(() => log.close());
  // Nothing else serves the customers of this machine, so that they need no notice.
  const times = configuredDrain(config, 0);
  const record = await RecordKeeper.open(paths.record, 'up', times, endMsOf(config));
  cleanUp.defer(() => record.remove());
  const stop = cleanUp.use(new StopSignals());

  const startedAt = performance.now();
  progress.line(`starting svc ${VERSION}, data directory ${paths.dataDir}`);
  const { logger } = log;
  const { signal } = stop;
  // A failed start keeps the sandboxes of an earlier run alive.
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  // Requests that use sandboxes end with them.
  const drain = { times, applies: () => stop.request?.keepSandboxes ?? false };
  const start = { config, paths, logger, progress, record, signal, keepSandboxes, drain };
  const service = await startAndCheck(start).catch((error: unknown) => {
    if (stop.signal.aborted) return undefined;
    progress.line(`the start failed; the full log is in ${paths.log}`);
    throw error;
  });
  if (service === undefined) {
    progress.line('stopped before it was ready');
    return 1;
  }
  const ready = await record.update({ state: 'ready' });
  progress.line(
    banner({
      record: ready,
      paths,
      hasOutbox: config.smtpUrl === undefined,
      prefix,
      readyMs: performance.now() - startedAt,
    }),
  );
  // The file that has the output would grow for as long as the service runs.
  if (isDetached) log.stopShowing();
  onReady(ready);

  stop.hurries(service.shutdown);
  const request = await stop.requested;
  progress.line(`stopping (${request.reason}) …`);
  const failed = await service.shutdown.run(request.reason);
  progress.line(
    failed.length === 0
      ? 'stopped'
      : `stopped, but these components did not stop cleanly: ${failed.join(', ')}`,
  );
  return failed.length === 0 ? 0 : 1;
}

/** Starts every component and runs the self-check. If either fails, only the sandboxes of an earlier run stay alive. */
async function startAndCheck(
  options: StartOptions & { readonly record: RecordKeeper },
): Promise<StartedService> {
  const { config, paths, progress, record, signal } = options;
  const service = await startService(options);
  try {
    const { baseUrl, runtimeUrl, tls, workers } = service;
    await record.update({
      base_url: baseUrl,
      runtime_url: runtimeUrl,
      workers,
      ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }),
    });
    const credentials = await operatorAccount(paths, service);
    const [template] = config.templates;
    if (template !== undefined) {
      progress.line('Self-check with a sandbox, through the public API:');
      const hasVms = async () => (await readdir(paths.vms)).length > 0;
      const apiKey = credentials.api_key;
      await selfCheck(progress, service, { apiKey, template, hasVms, stop: signal });
    }
    return service;
  } catch (error) {
    await service.shutdown.run('the start failed');
    throw error;
  }
}
