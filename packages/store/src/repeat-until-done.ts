import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '@svc/contract';
import { isLockError } from './database-errors.ts';

/** Long enough for those to go on who have waited behind a lock that this process asked for. */
const PAUSE_MS = 1_000;

/**
 * Runs `step` until it returns true, also when others held a lock that it needed for too long.
 * @throws ServiceError `database_unavailable` after `withinMs`; at once what else `step` throws
 */
export async function repeatUntilDone(
  step: () => Promise<boolean>,
  withinMs: number,
): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    let cause: unknown;
    try {
      if (await step()) return;
    } catch (error) {
      if (!isLockError(error)) throw error;
      cause = error;
    }
    if (performance.now() > end)
      throw new ServiceError('database_unavailable', undefined, { cause });
    await sleep(PAUSE_MS);
  }
}
