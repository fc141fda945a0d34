import type { Config } from '@svc/config';
import { openServiceLog } from '../output/log-sink.ts';
import type { Progress } from '../output/progress.ts';
import { VERSION } from '../version.ts';
import { servicePlaces } from './places.ts';
import { RecordKeeper, type ServiceRecord } from './service-record.ts';
import { banner } from './start/banner.ts';
import { lockDataDirectory } from './start/data-lock.ts';
import { operatorAccount } from './start/operator-account.ts';
import { selfCheck } from './start/self-check.ts';
import { type StartedService, type StartOptions, startService } from './start/start-service.ts';
import { StopSignals } from './stop-signals.ts';

export interface ServeOptions {
  readonly config: Config;
  /** Prefix of the commands that the banner proposes, so that they find this service. */
  readonly prefix: string;
  readonly progress: Progress;
  /** Called when the service is ready. */
  readonly onReady: (record: ServiceRecord) => void;
}

/**
 * Starts the service in this process, shows that a sandbox really runs, and serves until a signal ends it.
 * Resolves with the exit code, 0 after an orderly end.
 */
export async function serve({ config, prefix, progress, onReady }: ServeOptions): Promise<number> {
  const places = servicePlaces(config.dataDir);
  await using cleanUp = new AsyncDisposableStack();
  const lock = await lockDataDirectory(places);
  cleanUp.defer(() => lock.release());
  const log = openServiceLog(places.log, config.logLevel, (line) => progress.line(line));
  cleanUp.defer(() => log.close());
  const record = await RecordKeeper.open(places.record);
  cleanUp.defer(() => record.remove());
  const stop = cleanUp.use(new StopSignals());

  const startedAt = performance.now();
  progress.line(`svc ${VERSION} starts; its data is in ${places.dataDir}`);
  const { logger } = log;
  const { signal } = stop;
  // A start that fails leaves the sandboxes of before alive.
  const keepSandboxes = () => stop.request?.keepSandboxes ?? true;
  const start = { config, places, logger, progress, record, signal, keepSandboxes };
  const service = await startAndShow(start).catch((error: unknown) => {
    if (stop.signal.aborted) return undefined;
    progress.line(`the start failed; the whole log is ${places.log}`);
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
      places,
      mailIsKept: config.smtpUrl === undefined,
      prefix,
      readyMs: performance.now() - startedAt,
    }),
  );
  onReady(ready);

  const request = await stop.wished;
  progress.line(`stopping (${request.reason}) …`);
  const failed = await service.shutdown.run(request.reason);
  progress.line(
    failed.length === 0 ? 'stopped' : `stopped, but not in order: ${failed.join(', ')}`,
  );
  return failed.length === 0 ? 0 : 1;
}

/** Starts every piece and runs the self-check. When either fails, nothing is left running but sandboxes of before. */
async function startAndShow(
  options: StartOptions & { readonly record: RecordKeeper },
): Promise<StartedService> {
  const { config, places, progress, record, signal } = options;
  const service = await startService(options);
  try {
    const { baseUrl, runtimeUrl, tls, workers } = service;
    await record.update({
      base_url: baseUrl,
      runtime_url: runtimeUrl,
      workers,
      ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }),
    });
    const credentials = await operatorAccount(places, service);
    const [template] = config.templates;
    if (template !== undefined) {
      progress.line('A sandbox, over the public API:');
      await selfCheck(progress, service, credentials.api_key, template, signal);
    }
    return service;
  } catch (error) {
    await service.shutdown.run('the start failed');
    throw error;
  }
}
