import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/** Waits until `check` holds; throws when it does not in time. */
export async function until(
  what: string,
  check: () => Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await sleep(POLL_MS);
  }
}
