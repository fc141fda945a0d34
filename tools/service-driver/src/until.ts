import { setTimeout as sleep } from 'node:timers/promises';

/** Generous, because the machine may be loaded. */
const DEFAULT_DEADLINE_MS = 60_000;
const DEFAULT_INTERVAL_MS = 50;

export interface UntilOptions {
  /** Default: 60 seconds. */
  readonly deadlineMs?: number;
  /** Pause between two calls of `check`. Default: 50 milliseconds. */
  readonly intervalMs?: number;
}

/**
 * Polls `check` until it resolves with anything but undefined or false, and resolves with that value.
 * @throws Error that names `condition` when the deadline passes first; any error of `check`
 */
export async function until<T>(
  condition: string,
  check: () => Promise<T | undefined | false>,
  { deadlineMs = DEFAULT_DEADLINE_MS, intervalMs = DEFAULT_INTERVAL_MS }: UntilOptions = {},
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) {
      throw new Error(`timed out after ${deadlineMs / 1000} s waiting until ${condition}`);
    }
    await sleep(intervalMs);
  }
}
