import { setTimeout as sleep } from 'node:timers/promises';
import { isLockError } from './database-errors.ts';

/** Long enough for those to go on who have waited behind a lock that this process asked for. */
const PAUSE_MS = 1_000;

/** Others used what a migration needs for too long. What has run stays, and the next start goes on from there. */
export class MigrationTimeoutError extends Error {
  override readonly name = 'MigrationTimeoutError';

  constructor(withinMs: number, options: ErrorOptions) {
    super(
      `the migration of the database did not get its tables within ${withinMs / 1000} s: end long transactions, such as those of a backup, and start again`,
      options,
    );
  }
}

/**
 * Runs `step` until it returns true, also when others held a lock that it needed for too long.
 * @throws MigrationTimeoutError after `withinMs`; at once what else `step` throws
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
    if (performance.now() > end) throw new MigrationTimeoutError(withinMs, { cause });
    await sleep(PAUSE_MS);
  }
}
