import { setTimeout as sleep } from 'node:timers/promises';
import type { DeicticOptions } from '../options.ts';
import { ModelFailure } from './model-failure.ts';

export type RetryLimits = Pick<DeicticOptions, 'attempts' | 'pauseMs' | 'maxPauseMs'>;

/**
 * Retries a model call after transient failures, as long as no part of the answer was shown. Throws the error of the
 * last call, or the reason of `signal` when it aborts.
 */
export async function withRetries<T>(
  call: () => Promise<T>,
  retries: {
    readonly limits: RetryLimits;
    readonly signal: AbortSignal;
    /** Whether part of the answer has been shown. */
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

/** The pause before the next attempt, in ms: exponential, the second half random, at least as long as requested. */
export function pauseBefore(
  attempt: number,
  { pauseMs, maxPauseMs }: Pick<RetryLimits, 'pauseMs' | 'maxPauseMs'>,
  askedMs = 0,
  random: () => number = Math.random,
): number {
  const own = Math.min(maxPauseMs, pauseMs * 2 ** (attempt - 1)) * (0.5 + random() / 2);
  return Math.min(maxPauseMs, Math.max(own, askedMs));
}
