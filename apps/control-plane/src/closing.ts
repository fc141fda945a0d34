import type { Socket } from 'node:net';
import type { HttpServer } from '@svc/service-kit';

/** Requests under way at the end get this long before their connections are cut. */
const GRACE_MS = 5_000;

/**
 * Watches the connections of a server, on whichever of its addresses they come, and gives what
 * closes it: nothing new, a while for what is under way, then an end to it.
 */
export function watchForClosing(app: HttpServer): () => Promise<void> {
  const requests = new Map<Socket, number>();
  const count = (socket: Socket, change: number): void => {
    if (!requests.has(socket)) socket.once('close', () => requests.delete(socket));
    if (!socket.destroyed) requests.set(socket, (requests.get(socket) ?? 0) + change);
  };
  // A connection may be opened and never used, which nothing else would close.
  const opened = 'setSecureContext' in app.server ? 'secureConnection' : 'connection';
  app.server.on(opened, (socket: Socket) => count(socket, 0));
  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw;
    count(socket, 1);
    reply.raw.once('close', () => count(socket, -1));
  });
  const cut = (most: number): void => {
    for (const [socket, underWay] of requests) if (underWay <= most) socket.destroy();
  };
  return async () => {
    const timer = setTimeout(() => cut(Number.POSITIVE_INFINITY), GRACE_MS);
    const closed = app.close();
    cut(0);
    try {
      await closed;
    } finally {
      clearTimeout(timer);
    }
  };
}
