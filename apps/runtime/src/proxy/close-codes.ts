/** The code and reason with which a client's connection is closed. */
export interface CloseReason {
  readonly code: number;
  readonly reason: string;
}

export const UPSTREAM_UNAVAILABLE: CloseReason = { code: 1011, reason: 'upstream unavailable' };
export const SHUTTING_DOWN: CloseReason = { code: 1001, reason: 'server shutting down' };
export const KEEPALIVE_TIMEOUT: CloseReason = { code: 1001, reason: 'keepalive timeout' };
export const MESSAGE_TOO_SLOW: CloseReason = { code: 1008, reason: 'message too slow' };
export const TOO_MUCH_UNFINISHED: CloseReason = { code: 1013, reason: 'too much unfinished' };
export const SLOW_CONSUMER: CloseReason = { code: 1013, reason: 'slow consumer' };

/** Codes that a worker uses deliberately. Any other end of its connection is a failure. */
const FORWARDED: ReadonlySet<number> = new Set([1000, 1001, 1003, 1008, 1009, 1011, 1012, 1013]);

/** The close for a client whose worker's connection ended like this. */
export function closeOfWorker(code: number, reason: string): CloseReason {
  const isOwn = code >= 4000 && code <= 4999;
  return isOwn || FORWARDED.has(code) ? { code, reason } : UPSTREAM_UNAVAILABLE;
}
