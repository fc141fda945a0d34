import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '@svc/config';
import { isAlive } from '@svc/service-kit/process';
import { CliError } from '../../output/cli-error.ts';
import { Progress } from '../../output/progress.ts';
import { servicePlaces } from '../places.ts';
import { runningService, type ServiceRecord } from '../service-record.ts';
import { lockDataDirectory } from '../start/data-lock.ts';
import { KEEP_SANDBOXES_SIGNAL } from '../stop-signals.ts';
import { endLeftovers } from './leftovers.ts';

/** The service's own deadlines add up to less. */
const DEADLINE_MS = 150_000;
const POLL_MS = 50;

/**
 * Stops the service of the data directory and waits until it is gone; then ends what it, or one that
 * crashed before, has left. Says what it ended.
 * @throws CliError `still_running` when it does not end
 */
export async function stopService(
  config: Config,
  { keepSandboxes }: { readonly keepSandboxes: boolean },
): Promise<void> {
  const progress = new Progress();
  const places = servicePlaces(config.dataDir);
  const record = await runningService(places.record);
  if (record === undefined) {
    progress.line(`no service runs on ${places.dataDir}`);
  } else {
    const what = keepSandboxes
      ? 'the service; its sandboxes live on'
      : 'the service and its sandboxes';
    await progress.step(
      'stop',
      () => stop(record, keepSandboxes),
      () => what,
    );
  }
  const lock = await lockDataDirectory(places);
  try {
    await endLeftovers(config, places, progress, { keepSandboxes });
  } finally {
    await lock.release();
  }
}

async function stop(record: ServiceRecord, keepSandboxes: boolean): Promise<void> {
  const { pid } = record.process;
  process.kill(pid, keepSandboxes ? KEEP_SANDBOXES_SIGNAL : 'SIGTERM');
  const deadline = performance.now() + DEADLINE_MS;
  while (await isAlive(record.process)) {
    if (performance.now() > deadline) {
      throw new CliError(
        'still_running',
        `process ${pid} did not end within ${DEADLINE_MS / 1000} s`,
        {
          next: `kill -9 ${pid}, then \`svc down\` again to clean up`,
        },
      );
    }
    await sleep(POLL_MS);
  }
}
