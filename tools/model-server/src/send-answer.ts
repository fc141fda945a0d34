import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type { Answer, Dialect, StreamPart } from './dialects/index.ts';
import type { Reply } from './script.ts';

const GARBAGE = 'event: ???\ndata: {"choices":[{"delta": <html>\u0000 502 \n\n]]]';

/** The parts of an answer. */
export interface Outgoing {
  readonly dialect: Dialect;
  readonly reply: Reply;
  readonly answer: Answer;
  readonly body: unknown;
  readonly url: URL;
  readonly stream: boolean;
}

/** Sends an answer with the delays and faults of its reply. Rejects when `signal` aborts, which a disconnect causes. */
export async function sendAnswer(
  response: ServerResponse,
  outgoing: Outgoing,
  signal: AbortSignal,
): Promise<void> {
  const { reply, dialect, answer, body, url, stream } = outgoing;
  await pause(reply.first_byte_delay_ms, signal);
  // The request hangs until the client disconnects or the server stops.
  if (reply.fault === 'hang') return;
  if (reply.fault === 'close') {
    reset(response);
    return;
  }
  const status = reply.status ?? 200;
  if (status >= 400 || reply.body !== undefined) {
    const failure = dialect.failure(status, `The script answers ${status}.`);
    if (reply.retry_after !== undefined) response.setHeader('retry-after', reply.retry_after);
    sendJson(response, status, reply.body ?? failure);
    return;
  }
  response.setHeader('content-type', stream ? streamType(url) : 'application/json');
  if (reply.fault === 'garbage') {
    response.end(GARBAGE);
    return;
  }
  const parts = stream
    ? dialect.stream(answer, body, url)
    : [{ wire: JSON.stringify(dialect.whole(answer, body)), isChunk: false }];
  if (reply.fault === 'cut') await sendHalf(response, parts, reply, signal);
  else {
    await sendParts(response, parts, reply, signal);
    response.end();
  }
}

/** Closes the connection without an answer, with a TCP reset if it is not TLS. */
function reset({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
}

/** Sends a JSON body. A string is sent unchanged. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}

/** The media type of a stream. Google streams a JSON list unless the client requests events. */
function streamType({ pathname, searchParams }: URL): string {
  const isList = pathname.endsWith(':streamGenerateContent') && searchParams.get('alt') !== 'sse';
  return isList ? 'application/json' : 'text/event-stream; charset=utf-8';
}

async function sendParts(
  response: ServerResponse,
  parts: readonly StreamPart[],
  { chunk_delay_ms }: Reply,
  signal: AbortSignal,
): Promise<void> {
  let hasChunk = false;
  for (const { wire, isChunk } of parts) {
    if (isChunk && hasChunk) await pause(chunk_delay_ms, signal);
    hasChunk ||= isChunk;
    if (!response.write(wire)) await drained(response, signal);
  }
}

/** Sends the first half of the answer, waits until it is written, and closes the connection. */
async function sendHalf(
  response: ServerResponse,
  parts: readonly StreamPart[],
  reply: Reply,
  signal: AbortSignal,
): Promise<void> {
  const half = parts.slice(0, Math.ceil(parts.length / 2));
  const [only] = parts.length === 1 ? parts : [];
  const cut =
    only === undefined ? half : [{ ...only, wire: only.wire.slice(0, only.wire.length / 2) }];
  await sendParts(response, cut, reply, signal);
  await new Promise<void>((resolve) => response.write('\n', () => resolve()));
  response.socket?.destroySoon();
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    response.once('drain', () => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}

async function pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms !== undefined && ms > 0) await sleep(ms, undefined, { signal });
}
