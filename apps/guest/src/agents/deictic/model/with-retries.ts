import { setTimeout as sleep } from 'node:timers/promises';
import type { DeicticOptions } from '../options.ts';
import { ModelFailure } from './model-failure.ts';

export type RetryLimits = Pick<DeicticOptions, 'attempts' | 'pauseMs' | 'maxPauseMs'>;

/**
 * Calls until an answer comes: again after what may pass by itself, as long as nothing of an answer was shown.
 * Throws what the last call threw, or the reason of `signal` when that aborts.
 */
export async function withRetries<T>(
  call: () => Promise<T>,
  retries: {
    readonly limits: RetryLimits;
    readonly signal: AbortSignal;
    /** Whether something of the answer is out already. */
    shown(): boolean;
    onRetry(failure: ModelFailure, pauseMs: number): void;
  },
): Promise<T> {
  const { limits, signal } = retries;
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelFailure)) throw error;
      const { transient, retryAfterMs } = error.traits;
      if (!transient || retries.shown() || attempt >= limits.attempts) throw error;
      const pause = pauseBefore(attempt, limits, retryAfterMs);
      retries.onRetry(error, pause);
      await sleep(pause, undefined, { signal });
    }
  }
}

/** Exponential with jitter over its second half, and at least what the endpoint asks for; in ms. */
export function pauseBefore(
  attempt: number,
  { pauseMs, maxPauseMs }: Pick<RetryLimits, 'pauseMs' | 'maxPauseMs'>,
  askedMs = 0,
  random: () => number = Math.random,
): number {
  const own = Math.min(maxPauseMs, pauseMs * 2 ** (attempt - 1)) * (0.5 + random() / 2);
  return Math.min(maxPauseMs, Math.max(own, askedMs));
}
