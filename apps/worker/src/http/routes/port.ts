import { PORT_PROTOCOL, parsePort, ServiceError, WorkerPortParams } from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { upgradeOf } from '@svc/service-kit/websocket';
import type { WorkerContext } from '../context.ts';

const SWITCHING = [
  'HTTP/1.1 101 Switching Protocols',
  'Connection: Upgrade',
  `Upgrade: ${PORT_PROTOCOL}`,
  '',
  '',
].join('\r\n');

/** `GET /sandboxes/:id/ports/:port` with an upgrade: the caller's connection becomes one to a server in the guest. */
export function portRoute(app: HttpServer, context: WorkerContext): void {
  app.get(
    '/sandboxes/:id/ports/:port',
    {
      config: { webSocket: true },
      exposeHeadRoute: false,
      schema: { params: WorkerPortParams },
    },
    async (request, reply) => {
      const upgrade = upgradeOf(request.raw);
      if (upgrade === undefined || request.headers.upgrade !== PORT_PROTOCOL) {
        throw new ServiceError('route_not_found');
      }
      const { id, port } = request.params;
      const signal = AbortSignal.any([upgrade.gone, context.ending]);
      const sandbox = context.registry.get(id);
      const connection = await context.ports.open(sandbox, parsePort(port), signal);
      reply.hijack();
      upgrade.take();
      const { socket, head } = upgrade;
      if (head.length > 0) socket.unshift(head);
      socket.write(SWITCHING);
      connection.join(socket);
      return reply;
    },
  );
}
