import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  INTERNAL_PREFIX,
  LIMITS,
  makeProblem,
  PROBLEM_MEDIA_TYPE,
  parseAfterSeq,
  SESSION_PROTOCOL,
  ServiceError,
} from '@svc/contract';
import type { HttpServer, SessionTokens } from '@svc/service-kit';
import { toServiceError } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import { uuidv7 } from 'uuidv7';
import { WebSocketServer } from 'ws';
import type { WorkerLogger } from '../../logger.ts';
import { MAX_MESSAGE_BYTES } from '../../sessions/clients/client-frames.ts';
import type { SessionRegistry } from '../../sessions/registry.ts';
import type { Session } from '../../sessions/session.ts';

const PATH = new RegExp(`^${INTERNAL_PREFIX}/sessions/([^/]{1,128})/ws$`);
/** Time limit for a paused sandbox to resume. */
const OPEN_MS = 20_000;

export interface SessionSocketsDeps {
  readonly sessions: SessionRegistry;
  /** Verifies the tokens that runtime hosts mint for their connection to this worker. */
  readonly tokens: SessionTokens;
  readonly logger: WorkerLogger;
  /** Aborts when the worker ends. */
  readonly ending: AbortSignal;
}

/**
 * Serves `GET /internal/v1/sessions/:id/ws` on the worker's server: the WebSocket of a session, for the bearer of a
 * hop token. Every other upgrade is refused with a plain answer.
 */
export function serveSessionSockets(app: HttpServer, deps: SessionSocketsDeps): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: (offered) => (offered.has(SESSION_PROTOCOL) ? SESSION_PROTOCOL : false),
  });
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const gone = new AbortController();
    const leave = () => gone.abort(new Error('the client is gone'));
    socket.on('error', leave).once('close', leave);
    admit(request, deps, AbortSignal.any([gone.signal, deps.ending])).then(
      ({ session, afterSeq }) => {
        socket.off('error', leave);
        sockets.handleUpgrade(request, socket, head, (ws) => {
          session.attach({ ws, socket, ...(afterSeq === undefined ? {} : { afterSeq }) });
        });
      },
      (error: unknown) => refuse(socket, deps.ending.aborted ? shuttingDown() : error, deps.logger),
    );
  });
}

interface Admission {
  readonly session: Session;
  readonly afterSeq: number | undefined;
}

/** @throws ServiceError for an upgrade that is not allowed or not possible now */
async function admit(
  request: IncomingMessage,
  { sessions, tokens, ending }: SessionSocketsDeps,
  signal: AbortSignal,
): Promise<Admission> {
  if (ending.aborted) throw shuttingDown();
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://worker');
  const id = PATH.exec(pathname)?.[1];
  if (id === undefined) throw new ServiceError('route_not_found');
  const token = /^Bearer ([A-Za-z0-9._-]+)$/.exec(request.headers.authorization ?? '')?.[1];
  const claims = await tokens.verify(token);
  if (claims.chat_session_id !== id) throw new ServiceError('unauthorized');
  const afterSeq = parseAfterSeq(searchParams);
  const session = sessions.find(id);
  if (session === undefined) throw new ServiceError('session_not_found');
  if (session.clients >= LIMITS.clientsPerSession) throw new ServiceError('rate_limited');
  // A client that attaches needs a running sandbox.
  await session.sandbox.power.ensureRunning(withDeadline(signal, OPEN_MS));
  signal.throwIfAborted();
  return { session, afterSeq };
}

function shuttingDown(): ServiceError {
  return new ServiceError('shutting_down');
}

/** Answers an upgrade as a plain request that failed. */
function refuse(socket: Duplex, error: unknown, logger: WorkerLogger): void {
  const failure = toServiceError(error);
  if (failure.status >= 500) logger.warn({ err: error }, 'cannot open the socket of a session');
  const body = JSON.stringify(makeProblem(failure.code, uuidv7(), failure.message, failure.errors));
  const challenge = failure.status === 401 ? 'WWW-Authenticate: Bearer\r\n' : '';
  socket.end(
    `HTTP/1.1 ${failure.status} Refused\r\nConnection: close\r\n${challenge}` +
      `Content-Type: ${PROBLEM_MEDIA_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
