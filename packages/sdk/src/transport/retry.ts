import { setTimeout as sleep } from 'node:timers/promises';
import { SvcError } from '../errors.ts';
import { type BackoffBounds, backoffMs, retryAfterMs } from './backoff.ts';

const BACKOFF: BackoffBounds = { firstMs: 200, longestMs: 5_000 };
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

/** Whether repeating the call, which is safe to repeat, may succeed later. */
export function isRetryable(error: unknown): error is SvcError {
  if (!(error instanceof SvcError)) return false;
  return (
    error.code === 'connection_failed' ||
    error.code === 'idempotency_in_progress' ||
    RETRYABLE_STATUSES.has(error.status)
  );
}

/**
 * The pause before retry number `retry` (from 0), in milliseconds: the backoff, or the pause that the service requested
 * if that is longer. Undefined when the service requested more than a caller should wait.
 */
export function retryDelayMs(retry: number, error: SvcError): number | undefined {
  const asked = retryAfterMs(error);
  return asked > BACKOFF.longestMs ? undefined : Math.max(asked, backoffMs(retry, BACKOFF));
}

/** Runs `attempt`, and repeats it up to `maxRetries` times while its error is retryable. */
export async function withRetries<T>(
  maxRetries: number,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (tries >= maxRetries || !isRetryable(error)) throw error;
      const delay = retryDelayMs(tries, error);
      if (delay === undefined) throw error;
      await sleep(delay, undefined, { signal });
    }
  }
}
