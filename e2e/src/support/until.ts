import { setTimeout as sleep } from 'node:timers/promises';

/** How long a test waits for what should come soon, on a loaded machine too. */
const DEFAULT_DEADLINE_MS = 60_000;

export interface UntilOptions {
  readonly deadlineMs?: number;
  readonly intervalMs?: number;
}

/** Asks again and again until the answer is other than undefined and false; fails at the deadline, saying `what`. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { deadlineMs = DEFAULT_DEADLINE_MS, intervalMs = 100 }: UntilOptions = {},
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) {
      throw new Error(`${what}: not within ${deadlineMs / 1000} s`);
    }
    await sleep(intervalMs);
  }
}
