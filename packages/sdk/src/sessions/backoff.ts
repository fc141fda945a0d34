import { SvcError } from '../errors.ts';
import type { SocketEnd } from './socket.ts';

const MAX_RECONNECTS = 10;
/** Before there was any connection, a failure is more likely a mistake than a moment's weakness. */
const FIRST_TRIES = 3;
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;
const LONGEST_ASKED_MS = 30_000;

/** How often in a row a session is tried to be reached again. */
export function mostTries(wanted: number | undefined, wasEverReady: boolean): number {
  const most = wanted ?? MAX_RECONNECTS;
  return wasEverReady ? most : Math.min(FIRST_TRIES, most);
}

/** How long to wait before try number `tries`, in milliseconds: doubling with jitter, or what the service asked for. */
export function delayMs(
  tries: number,
  end: SocketEnd | SvcError,
  firstMs: number = FIRST_DELAY_MS,
): number {
  const longest = Math.min(firstMs * 2 ** (tries - 1), LONGEST_DELAY_MS);
  const asked = end instanceof SvcError ? (end.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.max(Math.min(asked, LONGEST_ASKED_MS), longest * (0.5 + Math.random() / 2));
}
