/** The wire format of server-sent events. */

/** One event. `data` is sent as JSON, which contains no line break. */
export function formatEvent(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A comment line, which clients ignore. It prevents idle timeouts. */
export const KEEPALIVE_COMMENT = ': keepalive\n\n';
