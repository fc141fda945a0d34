import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { AGENT_LINK_WORKER_LINE_BYTES, type WorkerMessage } from '@svc/contract';
import { LinkConnection } from './link-connection.ts';

const AUTHENTICATE_MS = 10_000;
const MAX_UNAUTHENTICATED = 4;

export interface LinkServerOptions {
  readonly host: string;
  readonly port: number;
  /** The only address accepted, which keeps out processes of the guest itself; undefined: any. */
  readonly workerAddress?: string;
  /** Time limit for a new connection to authenticate, in milliseconds. Default 10 s. */
  readonly authenticateMs?: number;
}

export interface LinkServerHandler {
  /** Receives the messages of each connection in order. Throws to end the connection. */
  onMessage(from: LinkConnection, message: WorkerMessage): void;
  onClosed(connection: LinkConnection): void;
}

/** Accepts the worker's connections to the link, and bounds the number of those not yet authenticated. */
export class LinkServer {
  readonly #options: LinkServerOptions;
  readonly #handler: LinkServerHandler;
  readonly #server: Server;
  readonly #connections = new Set<LinkConnection>();

  constructor(options: LinkServerOptions, handler: LinkServerHandler) {
    this.#options = options;
    this.#handler = handler;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Rejects when the address cannot be bound. */
  async listen(): Promise<void> {
    this.#server.listen(this.#options.port, this.#options.host);
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const connection of this.#connections) connection.close();
    await closed;
  }

  #accept(socket: Socket): void {
    const { workerAddress, authenticateMs = AUTHENTICATE_MS } = this.#options;
    const isWorker = workerAddress === undefined || socket.remoteAddress === workerAddress;
    const pending = [...this.#connections].filter(({ isAuthenticated }) => !isAuthenticated);
    if (!isWorker || pending.length >= MAX_UNAUTHENTICATED) {
      socket.on('error', () => undefined).destroy();
      return;
    }
    const connection = new LinkConnection(socket, {
      authenticateMs,
      lineBytes: AGENT_LINK_WORKER_LINE_BYTES,
      onMessage: (from, message) => this.#handler.onMessage(from, message),
      onClosed: (closed) => {
        this.#connections.delete(closed);
        this.#handler.onClosed(closed);
      },
    });
    this.#connections.add(connection);
  }
}
