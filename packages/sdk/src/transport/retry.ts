import { setTimeout as sleep } from 'node:timers/promises';
import { SvcError } from '../errors.ts';
import { type BackoffBounds, backoffMs, retryAfterMs } from './backoff.ts';

const BACKOFF: BackoffBounds = { firstMs: 200, longestMs: 5_000 };
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

/** How often, and for how long, an attempt is repeated. */
export interface RetryLimits {
  /** The maximum number of retries after failures that may pass; 0 for a call that is not safe to repeat. */
  readonly maxRetries: number;
  /** The longest total wait for a service that refused the call and said when to try again, in milliseconds. */
  readonly maxWaitMs: number;
}

/** Whether repeating the call, which is safe to repeat, may succeed later. */
function isRetryable(error: SvcError): boolean {
  return (
    error.code === 'connection_failed' ||
    error.code === 'idempotency_in_progress' ||
    RETRYABLE_STATUSES.has(error.status)
  );
}

/** Whether the service did not execute the call, and said when to try again. Repeating any call is then safe. */
function isPutOff(error: SvcError): boolean {
  return error.status === 429 && error.retryAfterSeconds !== undefined;
}

/**
 * The pause before retry number `retry` (from 0), in milliseconds: the backoff, or the pause that the service requested
 * if that is longer.
 */
function retryDelayMs(retry: number, error: SvcError): number {
  return Math.max(retryAfterMs(error), backoffMs(retry, BACKOFF));
}

/** Runs `attempt`, and repeats it within the limits while its error is one that may pass. */
export async function withRetries<T>(
  { maxRetries, maxWaitMs }: RetryLimits,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  let waitedMs = 0;
  let putOff = 0;
  let failures = 0;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      if (isPutOff(error)) {
        const delay = retryDelayMs(putOff++, error);
        waitedMs += delay;
        if (waitedMs > maxWaitMs) throw error;
        await sleep(delay, undefined, { signal });
      } else {
        if (failures >= maxRetries || !isRetryable(error)) throw error;
        // The service requested more than a caller should wait.
        if (retryAfterMs(error) > BACKOFF.longestMs) throw error;
        await sleep(retryDelayMs(failures++, error), undefined, { signal });
      }
    }
  }
}
