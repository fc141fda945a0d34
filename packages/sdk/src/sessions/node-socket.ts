import type { IncomingMessage } from 'node:http';
import { SESSION_PROTOCOL } from '@svc/contract';
import { WebSocket } from 'ws';
import { errorOfResponse, SvcError } from '../errors.ts';
import { watchLiveness } from './liveness.ts';
import type { OpenSocket, SessionSocket } from './socket.ts';

const HANDSHAKE_MS = 15_000;
const CLOSE_MS = 5_000;
const LONGEST_FRAME_BYTES = 64 * 1024 * 1024;
const LONGEST_PROBLEM_BYTES = 64 * 1024;

/** For Node: sends the token in a header, can trust a private CA, and detects silent connections. */
export const openNodeSocket: OpenSocket = async (
  { url, token, ca, traceparent, signal },
  handlers,
) => {
  signal.throwIfAborted();
  const socket = new WebSocket(url, [SESSION_PROTOCOL], {
    headers: {
      authorization: `Bearer ${token}`,
      ...(traceparent === undefined ? {} : { traceparent }),
    },
    handshakeTimeout: HANDSHAKE_MS,
    maxPayload: LONGEST_FRAME_BYTES,
    perMessageDeflate: false,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : Buffer.from(ca) }),
  });
  const opened = Promise.withResolvers<void>();
  const abort = () => socket.terminate();
  signal.addEventListener('abort', abort, { once: true });
  let isOpen = false;
  socket.once('open', () => {
    isOpen = true;
    opened.resolve();
  });
  socket.once('close', (code, reason) => {
    if (isOpen) handlers.closed({ code, reason: reason.toString() });
  });
  socket.on('error', (cause) => opened.reject(signal.aborted ? signal.reason : failed(url, cause)));
  socket.once('unexpected-response', (_request, response) => {
    refused(response).then(opened.reject, (cause) => opened.reject(failed(url, cause)));
  });
  socket.on('message', (data: Buffer, isBinary) =>
    handlers.message(isBinary ? new Uint8Array(data) : data.toString()),
  );
  watchLiveness(socket);
  try {
    await opened.promise;
  } catch (error) {
    socket.terminate();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
  return handleOf(socket);
};

function handleOf(socket: WebSocket): SessionSocket {
  return {
    send: (text) => socket.send(text),
    get unsentBytes() {
      return socket.bufferedAmount;
    },
    setPaused: (paused) => (paused ? socket.pause() : socket.resume()),
    close: () => {
      // A timer would keep the process alive for nothing.
      if (socket.readyState === socket.CLOSED) return;
      socket.close(1000);
      socket.resume();
      const timer = setTimeout(() => socket.terminate(), CLOSE_MS);
      socket.once('close', () => clearTimeout(timer));
    },
  };
}

/** The problem in the response that refused an upgrade. */
async function refused(response: IncomingMessage): Promise<SvcError> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > LONGEST_PROBLEM_BYTES) break;
  }
  const headers = new Headers();
  for (const name of ['x-request-id', 'retry-after']) {
    const value = response.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  const { statusCode: status = 0 } = response;
  const isStatus = status >= 200 && status <= 599;
  return errorOfResponse(
    new Response(Buffer.concat(chunks), { status: isStatus ? status : 502, headers }),
  );
}

function failed(url: string, cause: unknown): SvcError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SvcError({
    code: 'connection_failed',
    detail: `Could not reach ${new URL(url).origin}: ${reason}.`,
    cause,
  });
}
