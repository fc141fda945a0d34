import type { Duplex } from 'node:stream';
import { PortParams, ServiceError } from '@svc/contract';
import { clientGoneSignal, REQUEST_ID_HEADER } from '@svc/service-kit';
import { joinConnections } from '@svc/service-kit/streams';
import { checkHandshake, type Upgrade, upgradeOf } from '@svc/service-kit/websocket';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import { announcesWebSockets, mapWebSockets } from '../../ports/devtools.ts';
import { exchange, type GuestAnswer } from '../../ports/exchange.ts';
import { portTarget } from '../../ports/port-target.ts';
import type { PortView } from '../../ports/port-view.ts';
import type { Ports } from '../../ports/ports.ts';
import {
  handshakeLines,
  hasBody,
  requestHeaders,
  upgradeHeaders,
} from '../../ports/request-headers.ts';
import { preflightHeaders, responseHeaders } from '../../ports/response-headers.ts';
import type { Route } from '../../services.ts';
import { WORKER_PROBLEMS } from './problems.ts';

const PATH = '/v1/sandboxes/:id/ports/:port/*';
/** Security headers of the API whose place the guest's own take. */
const GUEST_DECIDES = ['x-frame-options', 'x-content-type-options'] as const;

/**
 * `/v1/sandboxes/{id}/ports/{port}/…`, with any method: passes requests and WebSockets to a server in the sandbox. The
 * API's own origin serves what hostile guests send, so every response is confined: see docs/security.md.
 */
export const sandboxPort: Route<'ports'> = (app, { ports }) => {
  // A separate scope, since bodies pass unread.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    const options = { onRequest: ports.links.authenticate, config: { webSocket: true } };
    const handler = (request: FastifyRequest, reply: FastifyReply) => serve(ports, request, reply);
    scope.route({ ...options, method: 'GET', url: PATH, exposeHeadRoute: false, schema, handler });
    scope.route({
      ...options,
      method: ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      url: PATH,
      schema: { ...schema, hide: true },
      handler,
    });
  });
};

const schema = {
  operationId: 'callPort',
  tags: ['Ports'],
  summary: 'Call a server in a sandbox',
  description:
    'Passes a request of any method, or a WebSocket, to the server on this port of the sandbox, on its loopback address or on all. A link passes in place of the API key. The answer is that of the server.',
  security: BY_API_KEY,
  params: PortParams,
  response: {
    default: {
      description: 'The answer of the server in the sandbox.',
      content: { '*/*': { schema: Type.Unsafe({ format: 'binary' }) } },
    },
    ...authenticatedProblems(
      ...WORKER_PROBLEMS,
      'port_not_allowed',
      'port_unreachable',
      'port_bad_response',
      'port_timeout',
      'too_many_port_connections',
      'bad_request',
      'route_not_found',
    ),
  },
};

async function serve(
  ports: Ports,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const target = portTarget(request.raw);
  if (target === undefined) throw new ServiceError('route_not_found');
  const { id, port } = request.params as PortParams;
  const view = ports.view(id, port, target);
  if (view.byLink && isPreflight(request)) return answerPreflight(request, reply);
  const upgrade = upgradeOf(request.raw);
  if (upgrade !== undefined) checkHandshake(request.raw);
  const signal = AbortSignal.any([upgrade?.gone ?? clientGoneSignal(reply), ports.closing]);
  const connection = await ports.connect(callerOf(request), id, view.port, signal);
  const headers = requestHeaders(request.raw, view, request.ip);
  const answer = await exchange(connection, {
    method: request.method,
    path: view.path,
    headers: upgrade === undefined ? headers : upgradeHeaders(headers),
    body: hasBody(request.raw) ? request.raw : undefined,
    idleMs: ports.idleMs,
    signal,
  });
  const { socket } = answer;
  if (socket === undefined) return sendAnswer(answer, view, reply);
  if (upgrade === undefined) {
    socket.destroy();
    throw new ServiceError('port_bad_response');
  }
  acceptUpgrade(upgrade, answer, socket, ports, reply);
  return reply;
}

async function sendAnswer(
  { response }: GuestAnswer,
  view: PortView,
  reply: FastifyReply,
): Promise<FastifyReply> {
  for (const name of GUEST_DECIDES) reply.removeHeader(name);
  reply.code(response.statusCode ?? 502).headers(responseHeaders(response, view));
  if (reply.request.method === 'HEAD') {
    response.destroy();
    return reply.send();
  }
  if (!announcesWebSockets(response, view)) return reply.send(response);
  const body = await mapWebSockets(response, view);
  return reply.header('content-length', body.length).send(body);
}

/** From here on the connection is the client's and the guest's, and its bytes are not looked at. */
function acceptUpgrade(
  upgrade: Upgrade,
  { response }: GuestAnswer,
  guest: Duplex,
  { closing, idleMs }: Ports,
  reply: FastifyReply,
): void {
  reply.hijack();
  upgrade.take();
  const { socket, head } = upgrade;
  if (head.length > 0) socket.unshift(head);
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    'Connection: Upgrade',
    'Upgrade: websocket',
    `${REQUEST_ID_HEADER}: ${reply.request.id}`,
    ...handshakeLines(response.headers),
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  void joinConnections(socket, guest, { signal: closing, idleMs });
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function answerPreflight({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const method = String(headers['access-control-request-method']);
  const asked = headers['access-control-request-headers'];
  return reply.code(204).headers(preflightHeaders(method, asked)).send();
}
