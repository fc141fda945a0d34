import { addAbortListener, once } from 'node:events';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { TLSSocket } from 'node:tls';

const DEADLINE_MS = 60_000;

/** A request that is sent unchanged: the target is not normalised and the body is not validated. */
export interface RawRequest {
  /** Default: GET. */
  readonly method?: string;
  /** Path and query, exactly as they are sent. */
  readonly target: string;
  /** Origin of the server. Default: the service's API. */
  readonly origin?: string;
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string or bytes are sent unchanged; any other value is sent as JSON. */
  readonly body?: unknown;
  /**
   * Leaves when it aborts: closes the sending half of the connection. An answer that the service has sent by then
   * still counts, so the caller knows for certain which of the two came first.
   */
  readonly signal?: AbortSignal;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Parses the body as JSON. @throws SyntaxError when it is not JSON */
  json<T = Record<string, unknown>>(): T;
}

/** Sends a request and reads the whole answer. Fails when that takes more than a minute. */
export async function sendRaw(
  { baseUrl, ca }: { readonly baseUrl: string; readonly ca: string },
  raw: RawRequest,
): Promise<RawAnswer> {
  const { body, headers } = encode(raw);
  const request = httpsRequest(raw.origin ?? baseUrl, {
    method: raw.method ?? 'GET',
    path: raw.target,
    ca,
    // A new connection for each request, because the service answers some of them by closing it.
    agent: false,
    headers: {
      ...(raw.apiKey === undefined ? {} : { authorization: `Bearer ${raw.apiKey}` }),
      ...headers,
    },
  });
  using _leaving = raw.signal && addAbortListener(raw.signal, () => leave(request));
  const late = () => request.destroy(new Error(`no answer within ${DEADLINE_MS / 1000} s`));
  const deadline = setTimeout(late, DEADLINE_MS);
  try {
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.end(body);
    const [response] = await answered;
    // When the service refuses to read the body, sending fails after the answer has arrived.
    request.on('error', () => undefined);
    const content = await buffer(response);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: content,
      json: <T>() => JSON.parse(content.toString('utf8')) as T,
    };
  } finally {
    clearTimeout(deadline);
  }
}

/** Closes the sending half of a connection, or gives up one that is not established. */
function leave(request: ClientRequest): void {
  const { socket } = request;
  if (socket instanceof TLSSocket && socket.getProtocol() !== null) socket.end();
  else request.destroy();
}

function encode(raw: RawRequest): { body?: string | Buffer; headers: Record<string, string> } {
  const { body } = raw;
  if (body === undefined) return { headers: { ...raw.headers } };
  const bytes =
    typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : JSON.stringify(body);
  return {
    body: bytes,
    headers: {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(bytes)),
      ...raw.headers,
    },
  };
}
