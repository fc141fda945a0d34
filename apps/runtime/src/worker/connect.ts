import { Agent } from 'node:https';
import { INTERNAL_PREFIX, type SessionRoute } from '@svc/contract';
import { pinCertificate } from '@svc/service-kit/tls';
import { WebSocket } from 'ws';

const CONNECT_MS = 5_000;
/** Beyond what a worker sends in one frame. */
const LONGEST_FRAME_BYTES = 16 * 1024 * 1024;

type WorkerOfSession = NonNullable<SessionRoute['worker']>;

/** One upgrade at a worker. */
export interface WorkerUpgrade {
  readonly sessionId: string;
  readonly afterSeq: number | undefined;
  /** Hop token, minted for this upgrade. */
  readonly token: string;
  readonly requestId: string;
}

/**
 * The session's WebSocket at its worker, pinned to the certificate that the worker registered. It comes paused, so
 * that nothing is lost before somebody listens. Rejects when the worker does not take the upgrade in time.
 */
export async function connectWorker(
  worker: WorkerOfSession,
  { sessionId, afterSeq, token, requestId }: WorkerUpgrade,
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
    maxPayload: LONGEST_FRAME_BYTES,
    perMessageDeflate: false,
    headers: { authorization: `Bearer ${token}`, 'x-request-id': requestId },
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

/** Most workers whose TLS sessions are remembered. */
const REMEMBERED = 256;
const agents = new Map<string, Agent>();

/** The agent for the worker with this certificate, which resumes the TLS session that it had before. */
function agentFor(certificate: string): Agent {
  const known = agents.get(certificate);
  if (known !== undefined) return known;
  const [oldest] = agents.keys();
  if (oldest !== undefined && agents.size >= REMEMBERED) agents.delete(oldest);
  const agent = new Agent(pinCertificate(certificate));
  agents.set(certificate, agent);
  return agent;
}
