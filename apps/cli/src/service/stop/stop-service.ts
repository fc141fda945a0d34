import type { Config } from '@svc/config';
import { Progress } from '../../output/progress.ts';
import { lockDataDirectory } from '../data-lock.ts';
import { servicePaths } from '../paths.ts';
import { runningService } from '../service-record.ts';
import { END_SANDBOXES_SIGNAL, KEEP_SANDBOXES_SIGNAL } from '../stop-signals.ts';
import { endLeftovers } from './leftovers.ts';
import { stopProcess } from './stop-process.ts';

/**
 * Stops the service of the data directory, waits until it has exited, and cleans up after it or an earlier one that
 * crashed. Prints each action.
 * @throws CliError `still_running` if the service does not exit
 */
export async function stopService(
  config: Config,
  { keepSandboxes }: { readonly keepSandboxes: boolean },
): Promise<void> {
  const progress = new Progress();
  const paths = servicePaths(config.dataDir);
  const record = await runningService(paths.record);
  if (record === undefined) {
    progress.line(`no service is running on ${paths.dataDir}`);
  } else {
    const stopped = keepSandboxes
      ? 'the service; its sandboxes keep running'
      : 'the service and its sandboxes';
    await progress.step(
      'stop',
      () => stopProcess(record, keepSandboxes ? KEEP_SANDBOXES_SIGNAL : END_SANDBOXES_SIGNAL),
      () => stopped,
    );
  }
  const lock = await lockDataDirectory(paths);
  try {
    await endLeftovers(config, paths, progress, { keepSandboxes });
  } finally {
    await lock.release();
  }
}
