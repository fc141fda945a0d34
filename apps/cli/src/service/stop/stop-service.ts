import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '@svc/config';
import { isAlive } from '@svc/service-kit/process';
import { CliError } from '../../output/errors.ts';
import { Progress } from '../../output/progress.ts';
import { lockDataDirectory } from '../data-lock.ts';
import { servicePaths } from '../paths.ts';
import { runningService, type ServiceRecord } from '../service-record.ts';
import { KEEP_SANDBOXES_SIGNAL } from '../stop-signals.ts';
import { endLeftovers } from './leftovers.ts';

/** Longer than the sum of the service's own deadlines. */
const STOP_TIMEOUT_MS = 150_000;
const POLL_MS = 50;

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
      () => stop(record, keepSandboxes),
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

async function stop(record: ServiceRecord, keepSandboxes: boolean): Promise<void> {
  const { pid } = record.process;
  process.kill(pid, keepSandboxes ? KEEP_SANDBOXES_SIGNAL : 'SIGTERM');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (await isAlive(record.process)) {
    if (performance.now() > deadline) {
      throw new CliError(
        'still_running',
        `process ${pid} did not exit within ${STOP_TIMEOUT_MS / 1000} s`,
        {
          next: `run \`kill -9 ${pid}\`, then \`svc down\` again to clean up`,
        },
      );
    }
    await sleep(POLL_MS);
  }
}
