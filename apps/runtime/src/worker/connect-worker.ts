import { Agent } from 'node:https';
import { INTERNAL_PREFIX, type SessionRoute } from '@svc/contract';
import { pinCertificate } from '@svc/service-kit/tls';
import { callHeaders, inSpan } from '@svc/service-kit/tracing';
import { WebSocket } from 'ws';

const CONNECT_MS = 5_000;
/** More than a worker sends in one frame. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

type WorkerOfSession = NonNullable<SessionRoute['worker']>;

/** What a client asks for. */
export interface SessionHop {
  readonly sessionId: string;
  readonly afterSeq: number | undefined;
}

/**
 * Opens the session's WebSocket at its worker, pinned to the certificate that the worker registered. The socket is
 * paused, so that no frame is lost before listeners are added. Rejects when the worker does not accept in time.
 */
export function connectWorker(
  worker: WorkerOfSession,
  upgrade: SessionHop,
  signal: AbortSignal,
): Promise<WebSocket> {
  const { sessionId } = upgrade;
  const attributes = { 'svc.worker_id': worker.worker_id, 'svc.session_id': sessionId };
  return inSpan({ name: 'worker GET /sessions/{id}/ws', kind: 'client', attributes }, () =>
    connect(worker, upgrade, signal),
  );
}

async function connect(
  worker: WorkerOfSession,
  { sessionId, afterSeq }: SessionHop,
  signal: AbortSignal,
): Promise<WebSocket> {
  signal.throwIfAborted();
  const url = new URL(
    `${INTERNAL_PREFIX}/sessions/${encodeURIComponent(sessionId)}/ws`,
    worker.url,
  );
  url.protocol = 'wss:';
  if (afterSeq !== undefined) url.searchParams.set('after_seq', String(afterSeq));
  const socket = new WebSocket(url, {
    agent: agentFor(worker.certificate),
    handshakeTimeout: CONNECT_MS,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    headers: { ...callHeaders(), authorization: `Bearer ${worker.token ?? ''}` },
  });
  const opened = Promise.withResolvers<WebSocket>();
  const abort = () => socket.terminate();
  signal.addEventListener('abort', abort, { once: true });
  socket.once('open', () => {
    socket.pause();
    opened.resolve(socket);
  });
  socket.on('error', opened.reject);
  try {
    return await opened.promise;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Bound of the agents kept for TLS session resumption. */
const MAX_AGENTS = 256;
const agents = new Map<string, Agent>();

/** The agent for the worker with this certificate; it resumes earlier TLS sessions. */
function agentFor(certificate: string): Agent {
  const known = agents.get(certificate);
  if (known !== undefined) return known;
  const [oldest] = agents.keys();
  if (oldest !== undefined && agents.size >= MAX_AGENTS) agents.delete(oldest);
  const agent = new Agent(pinCertificate(certificate));
  agents.set(certificate, agent);
  return agent;
}
