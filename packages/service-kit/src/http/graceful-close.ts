import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { speaksTls, watchHandshakes } from './tls-handshakes.ts';

const GRACE_MS = 5_000;
/** Hooks, limits and the pipe of a streamed answer each wait for the end of a response: more than the 10 of Node. */
const MOST_LISTENERS = 20;

/** The open connections of a server, with the number of requests in progress on each. */
export class ConnectionTracker {
  readonly #requests = new Map<Socket, number>();
  readonly #used = new WeakSet<Socket>();

  /** Tracks the connections of one listener, including those whose handshake never ends or on which no request ever arrives. */
  watch(listener: Server): void {
    if (!speaksTls(listener)) {
      listener.on('connection', (socket: Socket) => this.#add(socket, 0));
      return;
    }
    watchHandshakes(listener, {
      accepted: (tcp) => this.#add(tcp, 0),
      secured: (tcp, tls) => {
        this.#requests.delete(tcp);
        this.#add(tls, 0);
      },
    });
  }

  /** Counts a request as in progress until its response or its connection closes. */
  begin(socket: Socket, response: ServerResponse): void {
    this.#used.add(socket);
    this.#add(socket, 1);
    response.setMaxListeners(MOST_LISTENERS);
    response.once('close', () => this.#add(socket, -1));
  }

  /** Whether a request is in progress on this connection. */
  isBusy(socket: Socket): boolean {
    return (this.#requests.get(socket) ?? 0) > 0;
  }

  /** Destroys the connections without a request in progress. */
  destroyIdle(): void {
    for (const [socket, requests] of this.#requests) if (requests <= 0) socket.destroy();
  }

  /** Ends the connections whose requests have all been answered, but none whose first request has yet to arrive. */
  endUnused(): void {
    for (const [socket, requests] of this.#requests) {
      if (requests <= 0 && this.#used.has(socket)) socket.destroySoon();
    }
  }

  /** Destroys every connection. */
  destroyAll(): void {
    for (const socket of this.#requests.keys()) socket.destroy();
  }

  #add(socket: Socket, change: number): void {
    if (!this.#requests.has(socket)) socket.once('close', () => this.#requests.delete(socket));
    if (!socket.destroyed) this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + change);
  }
}

const trackers = new WeakMap<object, ConnectionTracker>();

/** Prepares a server for {@link closeGracefully}. Call it before any other hook is added. */
export function trackConnections(
  app: Pick<FastifyInstance, 'addHook'>,
  tracker: ConnectionTracker,
): void {
  trackers.set(app, tracker);
  app.addHook('onRequest', (request, reply, done) => {
    tracker.begin(request.raw.socket, reply.raw);
    done();
  });
}

/** Ends the connections of a server of `createHttpServer` that wait for another request. */
export function closeIdleConnections(app: Pick<FastifyInstance, 'addHook'>): void {
  trackers.get(app)?.endUnused();
}

/**
 * Closes a server of `createHttpServer`: it accepts nothing new, drops idle connections at once, and destroys
 * the connections of requests that are still in progress after `graceMs` milliseconds.
 */
export async function closeGracefully(
  app: Pick<FastifyInstance, 'addHook' | 'close'>,
  graceMs: number = GRACE_MS,
): Promise<void> {
  const tracker = trackers.get(app);
  const timer = setTimeout(() => tracker?.destroyAll(), graceMs);
  const closed = app.close();
  tracker?.destroyIdle();
  try {
    await closed;
  } finally {
    clearTimeout(timer);
  }
}
