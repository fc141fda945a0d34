import type { IncomingMessage, Server } from 'node:http';
import type { SessionClaims } from '@svc/contract';
import type { HopTokenVerifier } from '@svc/service-kit';
import { type WebSocket, WebSocketServer } from 'ws';
import { isPortUpgrade } from './port-sockets.ts';

/** The WebSocket of a session, from the worker's side. */
export interface AttachedSession {
  readonly socket: WebSocket;
  readonly url: URL;
  readonly claims: SessionClaims;
  readonly authorization: string | undefined;
  /** Text frames received so far. */
  readonly received: string[];
}

/** Accepts the WebSockets of sessions: greets each with `ready` and records the frames that it receives. */
export class SessionSockets {
  /** Every WebSocket accepted so far, oldest first. */
  readonly attached: AttachedSession[] = [];
  /** While set, upgrades are refused with this status. */
  refusal: number | undefined;
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #verify: HopTokenVerifier;

  constructor(verify: HopTokenVerifier) {
    this.#verify = verify;
  }

  /** The newest WebSocket. @throws Error when there is none */
  get last(): AttachedSession {
    const last = this.attached.at(-1);
    if (last === undefined) throw new Error('no session is attached');
    return last;
  }

  /** Handles the upgrades of this server, except for those to ports. */
  listen(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket, head) => {
      if (isPortUpgrade(request)) return;
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

  /** Cuts every WebSocket. */
  close(): void {
    for (const { socket } of this.attached) socket.terminate();
  }

  #admit({ headers }: IncomingMessage): Promise<SessionClaims> {
    return this.#verify(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]);
  }

  #attach(socket: WebSocket, request: IncomingMessage, claims: SessionClaims): void {
    const attached: AttachedSession = {
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
