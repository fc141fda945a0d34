import { setTimeout as sleep } from 'node:timers/promises';
import type { FleetRepository } from '@svc/store';
import { CliError } from '../../output/errors.ts';
import { Progress } from '../../output/progress.ts';
import { withInterrupt } from '../../process-lifetime.ts';
import { unknownWorker, withFleet } from './operator-fleet.ts';

const POLL_MS = 1_000;
/** Longer than the longest `SVC_WORKER_END_SECONDS` and the heartbeat before it. */
const DEADLINE_MS = 65 * 60_000;

/**
 * Orders a worker of the fleet to end its sandboxes and itself, and waits until it has no sandboxes. An interrupt ends the
 * wait, not the order.
 * @throws CliError `no_database`, `worker_not_found`, `still_running`
 */
export async function drainFleetWorker(workerId: string): Promise<void> {
  await withFleet(async (fleet) => {
    if (!(await fleet.drain(workerId))) throw unknownWorker(workerId);
    await withInterrupt((signal) =>
      new Progress().step(
        'drain',
        (note) => untilEmpty(fleet, workerId, note, signal),
        () => `the sandboxes of ${workerId} have ended; it stays cordoned`,
      ),
    );
  });
}

async function untilEmpty(
  fleet: FleetRepository,
  workerId: string,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  while (!deadline.aborted) {
    const worker = (await fleet.list()).find((one) => one.worker_id === workerId);
    if (worker === undefined || worker.sandboxes === 0) return;
    note(`sandboxes left: ${worker.sandboxes}`);
    await sleep(POLL_MS, undefined, { signal });
  }
  throw new CliError('still_running', `${workerId} still has sandboxes`, {
    next: 'check whether its machine runs: `svc worker ls` shows when it was last seen',
  });
}
