import type { ServerResponse } from 'node:http';
import type { HttpServer } from '@svc/service-kit';

/** Requests under way at the end get this long before their connections are cut. */
const GRACE_MS = 5_000;

/**
 * Watches the requests of a server, on whichever of its addresses they come, and gives what closes
 * it: no new connections, a while for what is under way, then an end to it.
 */
export function watchForClosing(app: HttpServer): () => Promise<void> {
  const underWay = new Set<ServerResponse>();
  app.addHook('onRequest', async (_request, reply) => {
    underWay.add(reply.raw);
    reply.raw.once('close', () => underWay.delete(reply.raw));
  });
  return async () => {
    const timer = setTimeout(() => {
      for (const response of underWay) response.socket?.destroy();
    }, GRACE_MS);
    try {
      await app.close();
    } finally {
      clearTimeout(timer);
    }
  };
}
