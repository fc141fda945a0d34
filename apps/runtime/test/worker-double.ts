import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SessionClaims } from '@svc/contract';
import { type CertificatePair, type Secret, SessionTokens } from '@svc/service-kit';
import { type WebSocket, WebSocketServer } from 'ws';

/** A connection as the worker got it. */
export interface Attached {
  readonly socket: WebSocket;
  readonly url: URL;
  readonly claims: SessionClaims;
  readonly authorization: string | undefined;
  /** Text frames that came. */
  readonly received: string[];
}

/** A worker's side of the sessions' WebSockets: greets with `ready`, remembers what comes. */
export class WorkerDouble {
  readonly attached: Attached[] = [];
  /** Status that refuses the next upgrades. */
  refusal: number | undefined;
  url = '';
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #tokens: SessionTokens;

  constructor(secret: Secret, tls: CertificatePair) {
    this.#tokens = new SessionTokens(secret, 'worker');
    this.#server = createServer(tls);
    this.#server.on('upgrade', (request, socket, head) => {
      socket.on('error', () => undefined);
      this.#admit(request)
        .then((claims) => {
          if (this.refusal !== undefined) throw new Error('refused');
          this.#sockets.handleUpgrade(request, socket, head, (client) =>
            this.#attach(client, request, claims),
          );
        })
        .catch(() => {
          socket.end(`HTTP/1.1 ${this.refusal ?? 401} No\r\nconnection: close\r\n\r\n`);
        });
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The newest connection. */
  get last(): Attached {
    const last = this.attached.at(-1);
    if (last === undefined) throw new Error('nobody is attached');
    return last;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.attached) socket.terminate();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #admit({ headers }: IncomingMessage): Promise<SessionClaims> {
    return this.#tokens.verify(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]);
  }

  #attach(socket: WebSocket, request: IncomingMessage, claims: SessionClaims): void {
    const attached: Attached = {
      socket,
      url: new URL(request.url ?? '', 'https://worker'),
      claims,
      authorization: request.headers.authorization,
      received: [],
    };
    socket.on('error', () => undefined);
    socket.on('message', (data) => attached.received.push(data.toString()));
    this.attached.push(attached);
    socket.send('{"type":"ready"}');
  }
}
