import type { Duplex } from 'node:stream';
import { ServiceError } from '@svc/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type WebSocket, WebSocketServer } from 'ws';
import { REQUEST_ID_HEADER } from '../http/request-id.ts';
import { scopeOf } from '../http/request-scopes.ts';
import { checkHandshake } from './handshake.ts';
import { type Upgrade, upgradeOf } from './upgrades.ts';

/** Most pieces in which a message arrives: each costs a few hundred bytes, however small it is. More close it with 1008. */
const MAX_FRAGMENTS = 1_024;
const MAX_CHUNKS = 16_384;

export interface WebSocketEndpointOptions {
  /** The subprotocol to select if the client offers it. */
  readonly protocol: string;
  /** The longest message that is accepted from a client. */
  readonly maxMessageBytes: number;
}

/** An open WebSocket and the connection underneath. */
export interface AcceptedWebSocket {
  readonly ws: WebSocket;
  readonly socket: Duplex;
}

/**
 * Accepts WebSockets on routes with `config.webSocket`, in two steps: {@link begin}, then the route's own checks,
 * which refuse the upgrade by throwing a ServiceError, then {@link accept}.
 */
export class WebSocketEndpoint {
  readonly #server: WebSocketServer;

  constructor({ protocol, maxMessageBytes }: WebSocketEndpointOptions) {
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_CHUNKS,
      handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
    });
    this.#server.on('headers', (lines, request) => {
      const id = scopeOf({ raw: request })?.requestId;
      if (id !== undefined) lines.push(`${REQUEST_ID_HEADER}: ${id}`);
    });
  }

  /**
   * The upgrade that a request asks for.
   * @throws ServiceError `route_not_found` for a plain request, `bad_request` for a malformed handshake
   */
  begin(request: FastifyRequest): Upgrade {
    const upgrade = upgradeOf(request.raw);
    if (upgrade === undefined) throw new ServiceError('route_not_found', 'Open it as a WebSocket.');
    checkHandshake(request.raw);
    return upgrade;
  }

  /** Completes the handshake. Undefined when the client has left. The handler returns `reply` afterwards. */
  accept(
    upgrade: Upgrade,
    request: FastifyRequest,
    reply: FastifyReply,
  ): AcceptedWebSocket | undefined {
    reply.hijack();
    upgrade.take();
    const { socket, head } = upgrade;
    let accepted: AcceptedWebSocket | undefined;
    // Calls back before it returns.
    this.#server.handleUpgrade(request.raw, socket, head, (ws) => {
      accepted = { ws, socket };
    });
    return accepted;
  }
}
