import type { SvcError } from '../errors.ts';

export interface BackoffBounds {
  /** Upper bound of the first pause, in milliseconds. */
  readonly firstMs: number;
  /** Upper bound of every pause, in milliseconds. */
  readonly longestMs: number;
}

/**
 * The pause before retry number `retry` (from 0), in milliseconds: its upper bound doubles with each retry, and
 * jitter takes off up to half of it.
 */
export function backoffMs(retry: number, { firstMs, longestMs }: BackoffBounds): number {
  const bound = Math.min(firstMs * 2 ** retry, longestMs);
  return bound * (0.5 + Math.random() / 2);
}

/** The pause that the service requested in its response, in milliseconds; 0 when it requested none. */
export function retryAfterMs(error: SvcError): number {
  return (error.retryAfterSeconds ?? 0) * 1000;
}
