import { setTimeout as delay } from 'node:timers/promises';

export interface SleepOptions {
  /** Whether the timer keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Waits `ms` milliseconds. Returns early, without an error, when `signal` aborts. */
export async function sleep(
  ms: number,
  signal: AbortSignal,
  options: SleepOptions = {},
): Promise<void> {
  if (signal.aborted) return;
  try {
    await delay(ms, undefined, { ...options, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
