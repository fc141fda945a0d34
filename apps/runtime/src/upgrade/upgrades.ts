import { type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpServer } from '@svc/service-kit';

/** A request to upgrade a connection to a WebSocket. */
export interface Upgrade {
  readonly socket: Duplex;
  /** Bytes received after the request's head. */
  readonly head: Buffer;
  /** Aborts when the client disconnects. */
  readonly gone: AbortSignal;
  /** Detaches the connection from HTTP: no response is sent on it afterwards. */
  take(): void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Routes upgrade requests like all other requests, so that refusals are ordinary responses. A route takes the connection
 * over with {@link upgradeOf}. A connection that is not taken over within `handshakeMs` is cut.
 */
export function routeUpgrades(app: HttpServer, handshakeMs: number): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Node removes its own listener, and an unhandled error event would end the process.
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
