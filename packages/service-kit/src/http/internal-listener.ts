import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { listenAddress } from '../addresses/index.ts';
import { speaksTls } from './tls-handshakes.ts';

/** Where a route is served once a server has an internal address. */
export type Exposure = 'public' | 'internal' | 'both';

/**
 * The exposure of the routes by which a component is watched: load balancers at either address, the operator at the internal
 * one. Undefined for other routes.
 */
export function watchingExposure(route: string): Exposure | undefined {
  if (route === '/healthz' || route === '/readyz') return 'both';
  return route === '/metrics' ? 'internal' : undefined;
}

/**
 * The second address of a server, for the components of the service and for its operator. Once it is open, each route is
 * served at the addresses of its exposure alone. Without it, all routes are served at the public address.
 */
export class InternalListener {
  readonly #listen: () => Server;
  readonly #exposureOf: (route: string) => Exposure;
  readonly #sockets = new WeakSet<Socket>();
  #server: Server | undefined;

  /**
   * @param listen makes a server like the public one
   * @param exposureOf the exposure of a route pattern
   */
  constructor(listen: () => Server, exposureOf: (route: string) => Exposure) {
    this.#listen = listen;
    this.#exposureOf = exposureOf;
  }

  /** Starts to listen, and settles with the port. */
  async open(address: { readonly host: string; readonly port: number }): Promise<number> {
    const server = this.#listen();
    const opened = speaksTls(server) ? 'secureConnection' : 'connection';
    server.on(opened, (socket: Socket) => this.#sockets.add(socket));
    server.listen({ host: await listenAddress(address.host), port: address.port });
    await once(server, 'listening');
    this.#server = server;
    return (server.address() as AddressInfo).port;
  }

  /** Whether a route is served at the address at which a connection has arrived. */
  serves(route: string, socket: Socket): boolean {
    if (this.#server === undefined) return true;
    const exposure = this.#exposureOf(route);
    return exposure === 'both' || (exposure === 'internal') === this.#sockets.has(socket);
  }

  /** Accepts nothing new, and settles once the requests in progress are answered. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    server.closeIdleConnections();
    await closed;
  }
}

const listeners = new WeakMap<object, InternalListener>();

/** Prepares a server for {@link listenInternally}. Its listener closes with the server. */
export function addInternalListener(
  app: Pick<FastifyInstance, 'addHook'>,
  listener: InternalListener,
): void {
  listeners.set(app, listener);
  app.addHook('onClose', () => listener.close());
}

/**
 * Opens the internal address of a server of `createHttpServer`. Settles with its port.
 * @throws the error of the operating system if the address cannot be listened on
 */
export async function listenInternally(
  app: Pick<FastifyInstance, 'addHook' | 'ready'>,
  address: { readonly host: string; readonly port: number },
): Promise<number> {
  const listener = listeners.get(app);
  if (listener === undefined) throw new Error('the server has no internal listener');
  await app.ready();
  return listener.open(address);
}
