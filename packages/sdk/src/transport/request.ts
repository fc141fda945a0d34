import { errorOfResponse, SvcError } from '../errors.ts';
import { Deadline } from './deadline.ts';
import type { FetchLike } from './fetch.ts';
import { type RetryLimits, withRetries } from './retry.ts';

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Deadline of the whole call in milliseconds, including retries. */
  readonly timeoutMs?: number | undefined;
  /**
   * The longest time in milliseconds, in total, to wait when the service refuses the call with a 429 that says when to
   * try again. 0: fail at once. Default: that of the client.
   */
  readonly maxWaitMs?: number | undefined;
}

/** A body that `fetch` accepts. An async iterable is streamed. */
export type RequestBody =
  | string
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

/** A call, before it is converted to an HTTP request. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: RequestBody;
  /** Whether the call is safe to repeat. Default: true for GET, PUT and DELETE. */
  readonly repeatable?: boolean;
  /** The deadline in milliseconds if neither the call nor the client names one. */
  readonly defaultTimeoutMs?: number;
  readonly options?: CallOptions | undefined;
}

/** A response with an unread body, and the deadline for reading it. */
export interface RawAnswer {
  readonly response: Response;
  readonly deadline: Deadline;
}

export interface TransportOptions {
  readonly baseUrl: string;
  readonly fetch: FetchLike;
  readonly apiKey?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxRetries?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly traceparent?: (() => string | undefined) | undefined;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_RETRIES = 3;
const DEFAULT_MAX_WAIT_MS = 60_000;

/** Converts calls to HTTP requests, with the address, credential, deadline, retries and typed failures. */
export class Transport {
  readonly #baseUrl: string;
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#baseUrl = checkBaseUrl(options.baseUrl);
  }

  /** The position of the caller in its trace. */
  get traceparent(): string | undefined {
    return this.#options.traceparent?.();
  }

  /** Sends a call and reads its JSON response. */
  async json<T>(request: ApiRequest): Promise<T> {
    return this.#run(request, async (response) => {
      try {
        return (await response.json()) as T;
      } catch (cause) {
        throw new SvcError({
          code: 'invalid_response',
          detail:
            'The answer was cut off or is not JSON; try again, and check what answers at this address.',
          status: response.status,
          requestId: response.headers.get('x-request-id') ?? undefined,
          cause,
        });
      }
    });
  }

  /** Sends a call whose response has no body. */
  async empty(request: ApiRequest): Promise<void> {
    await this.#run(request, async (response) => {
      await response.body?.cancel();
    });
  }

  /** Sends a call and returns its unread response. The deadline also covers the reading of the body. */
  async raw(request: ApiRequest): Promise<RawAnswer> {
    return this.#run(request, async (response, deadline) => ({ response, deadline }));
  }

  /** Sends `size` bytes to a presigned URL, without the client's credential, and once: its body may be a stream. */
  async put(url: string, body: RequestBody, size: number, options: CallOptions): Promise<void> {
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const deadline = new Deadline(timeoutMs, options.signal);
    const init: RequestInit & { duplex: 'half' } = {
      method: 'PUT',
      headers: { 'content-length': String(size) },
      // undici streams async iterables, but the standard body type does not include them.
      body: body as NonNullable<RequestInit['body']>,
      duplex: 'half',
      signal: deadline.signal,
      redirect: 'error',
    };
    try {
      const response = await this.#fetch(url, init, new URL(url).origin);
      await response.body?.cancel();
    } catch (error) {
      if (deadline.signal.aborted) throw deadline.failure();
      throw error;
    }
  }

  async #run<T>(
    request: ApiRequest,
    read: (response: Response, deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const timeoutMs =
      request.options?.timeoutMs ??
      this.#options.timeoutMs ??
      request.defaultTimeoutMs ??
      DEFAULT_TIMEOUT_MS;
    const deadline = new Deadline(timeoutMs, request.options?.signal);
    try {
      return await withRetries(this.#retryLimits(request), deadline.signal, async () =>
        read(await this.#send(request, deadline.signal), deadline),
      );
    } catch (error) {
      if (deadline.signal.aborted) throw deadline.failure();
      throw error;
    }
  }

  #retryLimits({ repeatable, method, body, options }: ApiRequest): RetryLimits {
    const { maxRetries = DEFAULT_MAX_RETRIES, maxWaitMs = DEFAULT_MAX_WAIT_MS } = this.#options;
    return {
      maxRetries: (repeatable ?? method !== 'POST') ? maxRetries : 0,
      // A refused call was not executed, but a stream that it has read is gone.
      maxWaitMs: isStream(body) ? 0 : (options?.maxWaitMs ?? maxWaitMs),
    };
  }

  async #send(request: ApiRequest, signal: AbortSignal): Promise<Response> {
    signal.throwIfAborted();
    const url = `${this.#baseUrl}${request.path}${queryString(request.query)}`;
    return this.#fetch(url, this.#init(request, signal), this.#baseUrl);
  }

  async #fetch(url: string, init: RequestInit, address: string): Promise<Response> {
    const response = await this.#options.fetch(url, init).catch((cause) => {
      throw new SvcError({
        code: 'connection_failed',
        detail: `Could not reach ${address}: ${reasonOf(cause)}.`,
        cause,
      });
    });
    if (!response.ok) throw await errorOfResponse(response);
    return response;
  }

  #init(request: ApiRequest, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { accept: 'application/json', ...request.headers };
    if (this.#options.apiKey !== undefined)
      headers.authorization = `Bearer ${this.#options.apiKey}`;
    const { traceparent } = this;
    if (traceparent !== undefined) headers.traceparent = traceparent;
    const init: RequestInit & { duplex?: 'half' } = {
      method: request.method,
      headers,
      signal,
      redirect: 'error',
    };
    if (request.json !== undefined) {
      headers['content-type'] = 'application/json';
      init.body = JSON.stringify(request.json);
    } else if (request.body !== undefined) {
      // undici streams async iterables, but the standard body type does not include them.
      init.body = request.body as NonNullable<RequestInit['body']>;
      init.duplex = 'half';
    }
    return init;
  }
}

/** Whether a body can be sent only once. */
export function isStream(body: RequestBody | undefined): boolean {
  return !(body === undefined || typeof body === 'string' || body instanceof Uint8Array);
}

/** The base URL without a trailing slash. */
function checkBaseUrl(baseUrl: string): string {
  if (!URL.canParse(baseUrl) || !/^https?:\/\//.test(baseUrl)) {
    throw new TypeError(
      `baseUrl must be an address such as https://localhost:8443, not "${baseUrl}"`,
    );
  }
  return baseUrl.replace(/\/+$/, '');
}

function queryString(query: ApiRequest['query']): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) search.set(name, String(value));
  }
  return search.size === 0 ? '' : `?${search}`;
}

/** The innermost message, because fetch wraps the reason of a failed connection in "fetch failed". */
function reasonOf(error: unknown): string {
  let innermost = error;
  while (innermost instanceof Error && innermost.cause instanceof Error)
    innermost = innermost.cause;
  if (!(innermost instanceof Error)) return String(innermost);
  const code = 'code' in innermost ? String(innermost.code) : undefined;
  return innermost.message === '' ? (code ?? innermost.name) : innermost.message;
}
