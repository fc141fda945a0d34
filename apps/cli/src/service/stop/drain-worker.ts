import type { Config } from '@svc/config';
import { CliError } from '../../output/errors.ts';
import { Progress } from '../../output/progress.ts';
import { servicePaths } from '../paths.ts';
import { runningService } from '../service-record.ts';
import { END_SANDBOXES_SIGNAL } from '../stop-signals.ts';
import { stopProcess } from './stop-process.ts';

/**
 * Has the worker of the data directory end its sandboxes in order, and waits until it has exited.
 * @throws CliError `no_worker` if no `svc worker` runs here; `still_running` if it does not exit
 */
export async function drainWorker({ dataDir }: Config): Promise<void> {
  const record = await runningService(servicePaths(dataDir).record);
  if (record?.component !== 'worker') {
    throw new CliError('no_worker', `no \`svc worker\` is running on ${dataDir}`, {
      next: '`svc status` shows what is running, `svc down` ends it and any sandboxes that are left',
    });
  }
  await new Progress().step(
    'drain',
    () => stopProcess(record, END_SANDBOXES_SIGNAL),
    () => 'the sandboxes of the worker have ended, and so has the worker',
  );
}
