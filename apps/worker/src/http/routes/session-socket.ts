import {
  INTERNAL_PREFIX,
  LIMITS,
  parseAfterSeq,
  SESSION_PROTOCOL,
  ServiceError,
} from '@svc/contract';
import type { HopTokenVerifier, HttpServer } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import { currentOrigin, trustCaller } from '@svc/service-kit/tracing';
import { WebSocketEndpoint } from '@svc/service-kit/websocket';
import type { FastifyRequest } from 'fastify';
import type { AgentSession } from '../../sessions/agent-session.ts';
import { MAX_MESSAGE_BYTES } from '../../sessions/clients/client-frames.ts';
import type { SessionRegistry } from '../../sessions/registry.ts';

/** Time limit for a paused sandbox to resume. */
const OPEN_MS = 20_000;
/** The time for a whole handshake, in milliseconds. */
export const HANDSHAKE_MS = OPEN_MS + 5_000;

export interface SessionSocketsDeps {
  readonly sessions: SessionRegistry;
  /** Verifies the tokens that control planes mint for a connection to this worker. */
  readonly verify: HopTokenVerifier;
  /** Aborts when the worker ends. */
  readonly ending: AbortSignal;
}

/**
 * Serves `GET /internal/v1/sessions/:id/ws` on the worker's server: the WebSocket of a session, or of the agent of a
 * sandbox under the UUID in its id, for the bearer of a hop token. Every other upgrade is refused.
 */
export function serveSessionSockets(app: HttpServer, deps: SessionSocketsDeps): void {
  const endpoint = new WebSocketEndpoint({
    protocol: SESSION_PROTOCOL,
    maxMessageBytes: MAX_MESSAGE_BYTES,
  });
  app.get<{ Params: { id: string } }>(
    `${INTERNAL_PREFIX}/sessions/:id/ws`,
    { config: { webSocket: true } },
    async (request, reply) => {
      const upgrade = endpoint.begin(request);
      const signal = AbortSignal.any([upgrade.gone, deps.ending]);
      const { session, afterSeq, controlsDesktop } = await admit(request, deps, signal).catch(
        (error: unknown) => {
          throw deps.ending.aborted ? new ServiceError('shutting_down') : error;
        },
      );
      // Before the upgrade is complete, and with it the request.
      const origin = currentOrigin();
      const accepted = endpoint.accept(upgrade, request, reply);
      if (accepted !== undefined) {
        const from = afterSeq === undefined ? {} : { afterSeq };
        session.attach({ ...accepted, ...from, controlsDesktop, origin });
      }
      return reply;
    },
  );
}

interface Admission {
  readonly session: AgentSession;
  readonly afterSeq: number | undefined;
  readonly controlsDesktop: boolean;
}

/** @throws ServiceError for an upgrade that is not allowed or not possible now */
async function admit(
  request: FastifyRequest<{ Params: { id: string } }>,
  { sessions, verify, ending }: SessionSocketsDeps,
  signal: AbortSignal,
): Promise<Admission> {
  if (ending.aborted) throw new ServiceError('shutting_down');
  const { id } = request.params;
  const token = /^Bearer ([A-Za-z0-9._-]+)$/.exec(request.headers.authorization ?? '')?.[1];
  const claims = await verify(token);
  if (claims.chat_session_id !== id) throw new ServiceError('unauthorized');
  trustCaller();
  const afterSeq = parseAfterSeq(new URL(request.url, 'https://worker').searchParams);
  const session = sessions.find(id);
  if (session === undefined) throw new ServiceError('session_not_found');
  if (session.clients >= LIMITS.clientsPerSession) throw new ServiceError('rate_limited');
  // A client that attaches needs a running sandbox.
  await session.sandbox.power.ensureRunning(withDeadline(signal, OPEN_MS));
  signal.throwIfAborted();
  const controlsDesktop = claims.cua_enabled && session.hasDesktop;
  return { session, afterSeq, controlsDesktop };
}
