import {
  parseAfterSeq,
  SESSION_PROTOCOL,
  ServiceError,
  SessionParams,
  type SessionRoute,
} from '@svc/contract';
import type { HttpServer } from '@svc/service-kit';
import { type KeyedBudget, type KeyedSlots, withDeadline } from '@svc/service-kit/concurrency';
import { FailureLogs } from '@svc/service-kit/logging';
import { WebSocketEndpoint } from '@svc/service-kit/websocket';
import type { WebSocket } from 'ws';
import type { SessionDirectory } from '../control-plane/session-directory.ts';
import type { RuntimeMetrics } from '../metrics.ts';
import type { RuntimeBounds } from '../options.ts';
import { MAX_MESSAGE_BYTES } from '../proxy/client-frame.ts';
import { UPSTREAM_UNAVAILABLE } from '../proxy/close-codes.ts';
import { closeSocket } from '../proxy/close-socket.ts';
import type { OpenConnections } from '../proxy/open-connections.ts';
import { limitUnfinishedMessage } from '../proxy/unfinished-message.ts';
import type { ConnectionSlots } from '../upgrade/connection-slots.ts';
import { tokenOf } from '../upgrade/session-token.ts';
import { connectWorker, type SessionHop } from '../worker/connect-worker.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The owner of the session, once its token has been verified. */
    tenantId: string | undefined;
  }
}

export interface SocketContext {
  readonly sessions: SessionDirectory;
  readonly slots: ConnectionSlots;
  /** Connections per tenant. */
  readonly tenants: KeyedSlots;
  /** Bytes of messages that clients have not finished, by tenant. */
  readonly unfinished: KeyedBudget;
  /** Bytes of frames that clients and workers have not read, by tenant. */
  readonly unsent: KeyedBudget;
  readonly connections: OpenConnections;
  readonly metrics: RuntimeMetrics;
  readonly bounds: RuntimeBounds;
  /** Whether new WebSockets are refused. */
  readonly isClosing: () => boolean;
}

/** `GET /v1/sessions/{id}/ws?after_seq=N&token=…`: the WebSocket of a session. */
export function sessionSocketRoute(app: HttpServer, context: SocketContext): void {
  const { slots, tenants, bounds, connections, metrics, isClosing } = context;
  const endpoint = new WebSocketEndpoint({
    protocol: SESSION_PROTOCOL,
    maxMessageBytes: MAX_MESSAGE_BYTES,
  });
  // By account, whose clients may try again as often as they like.
  const unreached = new FailureLogs();
  const notMoved = new FailureLogs();
  app.get(
    '/v1/sessions/:id/ws',
    { schema: { params: SessionParams }, config: { webSocket: true } },
    async (request, reply) => {
      const upgrade = endpoint.begin(request);
      const slot = slots.take(request.ip);
      let releaseTenant = (): void => undefined;
      const release = () => {
        slot.release();
        releaseTenant();
      };
      try {
        const query = queryOf(request.raw.url);
        const signal = withDeadline(upgrade.gone, bounds.handshakeMs);
        const { id } = request.params;
        const client = { id, token: tokenOf(request.headers.authorization, query) };
        const route = await context.sessions.find(client, signal);
        request.tenantId = route.tenant_id;
        releaseTenant = takeTenant(tenants, route.tenant_id);
        const afterSeq = parseAfterSeq(query);
        const hop = { sessionId: id, afterSeq };
        const worker = await reach(route, hop, signal)
          .catch((err: unknown) => {
            const facts = { err, session: id, worker: route.worker?.worker_id };
            unreached.note(route.tenant_id, (omitted) =>
              request.log.warn({ ...facts, omitted }, 'cannot reach the worker of a session'),
            );
            return reachElsewhere(
              route,
              hop,
              () => context.sessions.recover(client, signal),
              signal,
            );
          })
          .catch((err: unknown) => {
            notMoved.note(route.tenant_id, (omitted) =>
              request.log.warn({ err, session: id, omitted }, 'cannot reach the session elsewhere'),
            );
            return undefined;
          });
        if (upgrade.gone.aborted || isClosing()) {
          worker?.terminate();
          throw new ServiceError('shutting_down');
        }
        const accepted = endpoint.accept(upgrade, request, reply);
        if (accepted === undefined) {
          worker?.terminate();
          release();
          return reply;
        }
        const { ws: socket } = accepted;
        const budget = context.unfinished.of(route.tenant_id);
        limitUnfinishedMessage(accepted, { ...bounds, budget });
        slot.settle();
        socket.once('close', release);
        metrics.accepted.inc({ upstream: worker === undefined ? 'unavailable' : 'reached' });
        if (worker === undefined) {
          closeSocket(socket, UPSTREAM_UNAVAILABLE, bounds.closeGraceMs);
          return reply;
        }
        request.log.debug({ session: id }, 'attached');
        connections.open(socket, worker, context.unsent.of(route.tenant_id), (end) => {
          request.log.debug({ session: id, ...end }, 'detached');
        });
        return reply;
      } catch (error) {
        release();
        throw error;
      }
    },
  );
}

/** @throws when the session has no running sandbox, or its worker does not accept the upgrade */
async function reach(
  { worker }: SessionRoute,
  hop: SessionHop,
  signal: AbortSignal,
): Promise<WebSocket> {
  if (worker === undefined) throw new Error('the session has no running sandbox');
  return connectWorker(worker, hop, signal);
}

/**
 * Reaches a session that was started on another worker because this one is lost. Undefined when it was not.
 * @throws when it could not be started, or its new worker does not accept the upgrade
 */
async function reachElsewhere(
  { worker: lost }: SessionRoute,
  hop: SessionHop,
  recover: () => Promise<SessionRoute>,
  signal: AbortSignal,
): Promise<WebSocket | undefined> {
  const route = await recover();
  if (route.worker === undefined || route.worker.vm_id === lost?.vm_id) return undefined;
  return reach(route, hop, signal);
}

/** @throws ServiceError `too_many_connections` */
function takeTenant(tenants: KeyedSlots, tenantId: string): () => void {
  const release = tenants.take(tenantId);
  if (release !== undefined) return release;
  throw new ServiceError('too_many_connections');
}

function queryOf(url = ''): URLSearchParams {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
}
