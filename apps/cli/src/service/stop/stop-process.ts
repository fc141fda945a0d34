import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '@svc/service-kit/process';
import { CliError } from '../../output/errors.ts';
import type { ServiceRecord } from '../service-record.ts';

/** Longer than the sum of the service's own deadlines, apart from those for its drain and for saving its sandboxes. */
const STOP_TIMEOUT_MS = 150_000;
const POLL_MS = 50;

/** How long a running service may take to stop, in milliseconds. */
export function stopTimeoutMs({
  drain_ms = 0,
  end_ms = 0,
}: Pick<ServiceRecord, 'drain_ms' | 'end_ms'>): number {
  return STOP_TIMEOUT_MS + drain_ms + end_ms;
}

/**
 * Sends a signal to a running service and waits until its process has exited.
 * @throws CliError `still_running` if it does not exit in time
 */
export async function stopProcess(record: ServiceRecord, signal: NodeJS.Signals): Promise<void> {
  const { pid } = record.process;
  process.kill(pid, signal);
  const timeoutMs = stopTimeoutMs(record);
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
