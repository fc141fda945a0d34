import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Access } from './access.ts';

const DEADLINE_MS = 60_000;

/** A request that is sent as it stands: the target is not normalised, the body not checked. */
export interface RawRequest {
  readonly method?: string;
  /** Path and query as they go on the wire. */
  readonly target: string;
  /** Where it goes, if not to the service's API. */
  readonly origin?: string;
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Anything but a string or bytes is sent as JSON. */
  readonly body?: unknown;
  /** Closes the connection when it fires. */
  readonly signal?: AbortSignal;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body as JSON; throws when it is none. */
  json<T = Record<string, unknown>>(): T;
}

/** Sends a request and reads the whole answer. */
export async function sendRaw(access: Access, raw: RawRequest): Promise<RawAnswer> {
  const { body, headers } = encode(raw);
  const request = httpsRequest(raw.origin ?? access.address.baseUrl, {
    method: raw.method ?? 'GET',
    path: raw.target,
    ca: access.ca,
    // A connection for each request: some of them are answered by closing it.
    agent: false,
    headers: {
      ...(raw.apiKey === undefined ? {} : { authorization: `Bearer ${raw.apiKey}` }),
      ...headers,
    },
    signal: withDeadline(raw.signal, DEADLINE_MS),
  });
  const answered = once(request, 'response') as Promise<[IncomingMessage]>;
  request.end(body);
  const [response] = await answered;
  // A body that the service refuses to read breaks the sending, after the answer came.
  request.on('error', () => undefined);
  const content = await buffer(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: content,
    json: <T>() => JSON.parse(content.toString('utf8')) as T,
  };
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
