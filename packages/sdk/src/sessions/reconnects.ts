import { SvcError } from '../errors.ts';
import { backoffMs, retryAfterMs } from '../transport/backoff.ts';
import type { SocketEnd } from './socket.ts';

/** For longer than a session needs to go on elsewhere, even if its worker had announced a restart. */
const MAX_RECONNECTS = 20;
/** Before the first connection, a failure is more likely a mistake than a temporary fault. */
const FIRST_TRIES = 3;
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;
const LONGEST_ASKED_MS = 30_000;

/** The maximum number of consecutive attempts to reach a session. */
export function mostTries(wanted: number | undefined, wasEverReady: boolean): number {
  const most = wanted ?? MAX_RECONNECTS;
  return wasEverReady ? most : Math.min(FIRST_TRIES, most);
}

/**
 * The pause before attempt number `attempt` (from 1), in milliseconds: the backoff, or the pause that the service
 * requested if that is longer, up to 30 seconds.
 */
export function reconnectDelayMs(
  attempt: number,
  end: SocketEnd | SvcError,
  firstMs: number = FIRST_DELAY_MS,
): number {
  const asked = end instanceof SvcError ? retryAfterMs(end) : 0;
  const backoff = backoffMs(attempt - 1, { firstMs, longestMs: LONGEST_DELAY_MS });
  return Math.max(Math.min(asked, LONGEST_ASKED_MS), backoff);
}
