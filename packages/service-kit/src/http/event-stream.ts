/** Server-sent events on the wire. */

/** One event; `data` is sent as JSON, which holds no line break. */
export function formatEvent(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A comment line, which clients skip: keeps idle connections from being cut. */
export const KEEPALIVE_COMMENT = ': keepalive\n\n';
