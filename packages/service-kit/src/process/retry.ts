import { setTimeout as sleep } from 'node:timers/promises';

export interface BackoffOptions {
  /** Longest first pause, in ms. Default 100. */
  readonly baseMs?: number;
  /** Longest pause of all, in ms. Default 5000. */
  readonly maxMs?: number;
}

export interface RetryOptions extends BackoffOptions {
  /** Calls in all, the first included. Default 5. */
  readonly attempts?: number;
  readonly signal?: AbortSignal;
  /** Whether this failure may pass by itself. Default: every one. */
  readonly isTransient?: (error: unknown) => boolean;
}

/** A pause before attempt `attempt` (1 is the first retry): exponential, with full jitter, in ms. */
export function backoffMs(
  attempt: number,
  { baseMs = 100, maxMs = 5000 }: BackoffOptions = {},
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1));
}

/** Calls until it succeeds, fails for good, runs out of attempts or is aborted; throws the last failure. */
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
