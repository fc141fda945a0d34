/** How a connection of a client ends. */
export interface CloseReason {
  readonly code: number;
  readonly reason: string;
}

export const UPSTREAM_UNAVAILABLE: CloseReason = { code: 1011, reason: 'upstream unavailable' };
export const SHUTTING_DOWN: CloseReason = { code: 1001, reason: 'server shutting down' };
export const KEEPALIVE_TIMEOUT: CloseReason = { code: 1001, reason: 'keepalive timeout' };
export const SLOW_CONSUMER: CloseReason = { code: 1013, reason: 'slow consumer' };

/** Codes that a worker closes with on purpose; any other end of its connection is a failure. */
const PASSED_ON: ReadonlySet<number> = new Set([1000, 1001, 1003, 1008, 1009, 1011, 1012, 1013]);

/** What a client is told when its worker's connection has ended like this. */
export function closeOfWorker(code: number, reason: string): CloseReason {
  const isOwn = code >= 4000 && code <= 4999;
  return isOwn || PASSED_ON.has(code) ? { code, reason } : UPSTREAM_UNAVAILABLE;
}
