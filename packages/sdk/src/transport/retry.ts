import { setTimeout as sleep } from 'node:timers/promises';
import { SvcError } from '../errors.ts';

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 5_000;
const RETRYABLE_STATUSES = new Set([429, 502, 503, 504]);

/** Whether trying the same safe-to-repeat call again can help. */
export function isRetryable(error: unknown): error is SvcError {
  if (!(error instanceof SvcError)) return false;
  return (
    error.code === 'connection_failed' ||
    error.code === 'idempotency_in_progress' ||
    RETRYABLE_STATUSES.has(error.status)
  );
}

/**
 * How long to wait before try number `attempt` + 1, in milliseconds: doubling with jitter, or what the
 * service asked for. Undefined when that is longer than a caller should be kept waiting.
 */
export function retryDelayMs(attempt: number, error: SvcError): number | undefined {
  const asked = (error.retryAfterSeconds ?? 0) * 1000;
  if (asked > LONGEST_DELAY_MS) return undefined;
  const backoff = Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
  return Math.max(asked, backoff / 2 + Math.random() * (backoff / 2));
}

/** Calls `attempt` again, at most `maxRetries` times, while its failure is one that passes by itself. */
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
