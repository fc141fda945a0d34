import { type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpServer } from '@svc/service-kit';

/** A connection that asks to become a WebSocket. */
export interface Upgrade {
  readonly socket: Duplex;
  /** What came behind the request's head. */
  readonly head: Buffer;
  /** Aborts when the client leaves. */
  readonly gone: AbortSignal;
  /** Takes the connection away from HTTP: from now on nothing is answered on it. */
  take(): void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Sends upgrade requests the way of all requests, so that what refuses one answers as everywhere; a route takes the
 * connection over with {@link upgradeOf}. A connection that is not taken over within `handshakeMs` is cut.
 */
export function routeUpgrades(app: HttpServer, handshakeMs: number): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node has taken its own listener off, and an error that nobody hears ends the process.
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    const late = setTimeout(() => socket.destroy(), handshakeMs);
    const gone = new AbortController();
    socket.once('close', () => {
      clearTimeout(late);
      gone.abort(new Error('the client left during the handshake'));
    });
    if (socket instanceof Socket) {
      response.assignSocket(socket);
      response.once('finish', () => socket.destroySoon());
    }
    upgrades.set(request, {
      socket,
      head,
      gone: gone.signal,
      take: () => {
        clearTimeout(late);
        if (socket instanceof Socket) response.detachSocket(socket);
      },
    });
    app.routing(request, response);
  });
}

/** The upgrade that a request asks for; undefined for a plain request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}
