import { setTimeout as sleep } from 'node:timers/promises';

export interface BackoffOptions {
  /** Upper bound of the first pause, in milliseconds. Default 100. */
  readonly baseMs?: number;
  /** Upper bound of every pause, in milliseconds. Default 5000. */
  readonly maxMs?: number;
}

export interface RetryOptions extends BackoffOptions {
  /** Maximum number of calls, including the first. Default 5. */
  readonly attempts?: number;
  readonly signal?: AbortSignal;
  /** Whether another call may succeed after this failure. Default: always. */
  readonly isTransient?: (error: unknown) => boolean;
}

/** The pause before retry number `attempt` (from 1), in milliseconds: exponential backoff with full jitter. */
export function backoffMs(
  attempt: number,
  { baseMs = 100, maxMs = 5000 }: BackoffOptions = {},
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1));
}

/** Repeats `call` until it succeeds. Throws its last error when that is not transient, when the attempts are used up or when the signal aborts. */
export async function retry<T>(
  call: (attempt: number) => Promise<T>,
  options: RetryOptions = {},
): Promise<T> {
  const { attempts = 5, signal, isTransient = () => true } = options;
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await call(attempt);
    } catch (error) {
      if (attempt >= attempts || signal?.aborted || !isTransient(error)) throw error;
    }
    await sleep(backoffMs(attempt, options), undefined, signal === undefined ? {} : { signal });
  }
}
