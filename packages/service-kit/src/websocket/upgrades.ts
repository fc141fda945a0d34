import { type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServiceError } from '@svc/contract';
import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route accepts upgrades, to WebSocket or another protocol. Other routes refuse them with 404. */
    webSocket?: boolean;
  }
}

/** A connection whose client asks for another protocol, until the upgrade is accepted or refused. */
export class Upgrade {
  readonly socket: Duplex;
  /** The bytes that followed the request head. */
  readonly head: Buffer;
  readonly #gone = new AbortController();
  readonly #late: NodeJS.Timeout;
  #response: ServerResponse | undefined;
  #onTaken: (() => void) | undefined;

  /** The connection is cut unless the upgrade is accepted within `handshakeMs` milliseconds. */
  constructor(socket: Duplex, head: Buffer, response: ServerResponse, handshakeMs: number) {
    this.socket = socket;
    this.head = head;
    this.#response = response;
    this.#late = setTimeout(() => socket.destroy(), handshakeMs);
    // Node has removed its own listener, and an unhandled error event ends the process.
    socket.on('error', () => socket.destroy());
    socket.once('close', this.#onClose);
    if (socket instanceof Socket) {
      response.assignSocket(socket);
      response.once('finish', () => socket.destroySoon());
    }
  }

  /** Aborts when the client leaves before the upgrade is accepted. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Sets what happens when the upgrade is accepted. */
  whenTaken(act: () => void): void {
    this.#onTaken = act;
  }

  /** Detaches the connection from HTTP: no response is sent on it from now on. */
  take(): void {
    clearTimeout(this.#late);
    this.socket.off('close', this.#onClose);
    if (this.socket instanceof Socket) {
      this.#response?.detachSocket(this.socket);
      // The server's own timeout knows requests only.
      this.socket.setTimeout(0);
    }
    this.#response = undefined;
    this.#onTaken?.();
  }

  readonly #onClose = (): void => {
    clearTimeout(this.#late);
    this.#gone.abort(new Error('the client left during the handshake'));
  };
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Routes upgrade requests like all other requests, so that refusals are answered in the same format. Routes with
 * `config.webSocket` accept an upgrade through `WebSocketEndpoint`; all others refuse it. A connection whose
 * upgrade is not accepted within `handshakeMs` milliseconds is cut. Call it before adding routes.
 */
export function routeUpgrades(
  app: Pick<FastifyInstance, 'addHook' | 'routing' | 'server'>,
  handshakeMs: number,
): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const isRefused =
      upgradeOf(request.raw) !== undefined && request.routeOptions.config.webSocket !== true;
    done(isRefused ? new ServiceError('route_not_found') : undefined);
  });
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    upgrades.set(request, new Upgrade(socket, head, response, handshakeMs));
    app.routing(request, response);
  });
}

/** The upgrade that a request asks for; undefined for a plain request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}
