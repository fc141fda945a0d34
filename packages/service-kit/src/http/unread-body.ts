import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';

/**
 * Discards the rest of a request body after the response, because the next request on the connection follows it. A
 * body that has not ended after `ms` milliseconds closes its connection.
 * https://www.rfc-editor.org/rfc/rfc9112#section-9.3
 */
export function discardUnreadBodies(app: FastifyInstance, ms: number): void {
  app.addHook('onResponse', ({ raw }, _reply, done) => {
    const unread = !raw.complete || raw.readableLength > 0;
    if (unread && !raw.destroyed) discard(raw, ms);
    done();
  });
}

function discard(body: IncomingMessage, ms: number): void {
  const timer = setTimeout(() => body.destroy(), ms).unref();
  body.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  body.unpipe().removeAllListeners('data').resume();
}
