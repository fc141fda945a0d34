import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '@svc/service-kit/process';
import { CliError } from '../../output/errors.ts';
import type { ServiceRecord } from '../service-record.ts';

/** Longer than the sum of the service's own deadlines, apart from its drain. */
const STOP_TIMEOUT_MS = 150_000;
const POLL_MS = 50;

/**
 * Sends a signal to a running service and waits until its process has exited.
 * @throws CliError `still_running` if it does not exit in time
 */
export async function stopProcess(record: ServiceRecord, signal: NodeJS.Signals): Promise<void> {
  const { pid } = record.process;
  process.kill(pid, signal);
  const timeoutMs = STOP_TIMEOUT_MS + (record.drain_ms ?? 0);
  const deadline = performance.now() + timeoutMs;
  while (await isAlive(record.process)) {
    if (performance.now() > deadline) {
      throw new CliError(
        'still_running',
        `process ${pid} did not exit within ${timeoutMs / 1000} s`,
        {
          next: `run \`kill -9 ${pid}\`, then \`svc down\` to clean up`,
        },
      );
    }
    await sleep(POLL_MS);
  }
}
