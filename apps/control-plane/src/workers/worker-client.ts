import { type Duplex, Readable } from 'node:stream';
import {
  EVENT_STREAM_MEDIA_TYPE,
  type ExecErrorEvent,
  type ExecEvent,
  INTERNAL_PREFIX,
  isErrorCode,
  ServiceError,
} from '@svc/contract';
import { withDeadline } from '@svc/service-kit/concurrency';
import { callHeaders, inSpan } from '@svc/service-kit/tracing';
import type { FastifyBaseLogger } from 'fastify';
import type { Dispatcher } from 'undici';
import type { CallKind, WorkerConnections } from './connections.ts';
import { checkedEvents, readEvents } from './exec-events.ts';
import { BadAnswer, checkHead, checkStatus, type ExpectedJson, readJson } from './read-answer.ts';
import { upgradeConnection } from './upgrade-connection.ts';
import type { WorkerAddress } from './worker-address.ts';
import {
  badResponseError,
  errorFromCode,
  errorFromWorker,
  unreachableError,
} from './worker-errors.ts';

/** Longest silence within a JSON answer, which a worker sends in one go. */
const JSON_SILENCE_MS = 30_000;

/** One request to a worker. */
export interface WorkerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Default `control`. */
  readonly kind?: CallKind;
  /** Route below the internal prefix; `{id}` stands for the sandbox. */
  readonly route: string;
  readonly vmId?: string;
  readonly query?: Record<string, string | number>;
  readonly json?: unknown;
  /** Bytes to send, with their length when it is known. */
  readonly upload?: { readonly source: Readable; readonly length: number | undefined };
  readonly accept?: string;
  /** Cancels the call: the worker sees its caller leave. */
  readonly signal?: AbortSignal;
  /** Time until the answer is complete or, for a stream, has begun. */
  readonly deadlineMs: number;
  /** Longest silence within the answer of a stream. */
  readonly silenceMs?: number;
}

/** An answer whose body is still to be read. */
export interface WorkerStream {
  readonly body: Readable;
  readonly contentLength: number | undefined;
}

/** Parts that the client is made of. */
export interface WorkerClientParts {
  readonly connections: Pick<WorkerConnections, 'agentFor'>;
  readonly mintToken: (workerId: string) => Promise<string>;
  readonly logger: FastifyBaseLogger;
}

/**
 * Speaks the internal API of workers. Workers host hostile guests, so each answer is checked against the
 * contract: one that breaks it is logged and thrown as `worker_bad_response`. An error of the worker keeps
 * its code, a worker that does not answer is `worker_unreachable`, and a cancelled call throws the
 * reason of its signal.
 */
export class WorkerClient {
  readonly #parts: WorkerClientParts;

  constructor(parts: WorkerClientParts) {
    this.#parts = parts;
  }

  /** Calls and reads the whole JSON answer. */
  async call<T>(
    worker: WorkerAddress,
    request: WorkerRequest,
    expected: ExpectedJson<T>,
  ): Promise<T> {
    return this.#answer(worker, request, async (signal) =>
      readJson(await this.#send(worker, request, signal), expected),
    );
  }

  /** Calls an operation that answers 204. */
  async callWithoutAnswer(worker: WorkerAddress, request: WorkerRequest): Promise<void> {
    await this.#answer(worker, request, async (signal) => {
      const response = await this.#send(worker, request, signal);
      checkStatus(response, 204);
      await response.body.dump();
    });
  }

  /** Calls and hands the answer over as it arrives. Destroying the body ends the call. */
  async stream(
    worker: WorkerAddress,
    request: WorkerRequest,
    mediaType: string,
  ): Promise<WorkerStream> {
    const started = new AbortController();
    const timer = setTimeout(() => started.abort(), request.deadlineMs);
    const signal = AbortSignal.any([started.signal, ...(request.signal ? [request.signal] : [])]);
    try {
      const response = await this.#send(worker, request, signal);
      checkHead(response, 200, mediaType);
      const length = Number(response.headers['content-length'] ?? Number.NaN);
      return {
        body: response.body,
        contentLength: Number.isSafeInteger(length) ? length : undefined,
      };
    } catch (error) {
      throw this.#failure(worker, request, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls and hands the server-sent events of a command over as they arrive, each of them checked. */
  async streamEvents(worker: WorkerAddress, request: WorkerRequest): Promise<WorkerStream> {
    const { body } = await this.stream(worker, request, EVENT_STREAM_MEDIA_TYPE);
    const events = checkedEvents(body, (reason) => this.#log(worker, request, reason));
    return { body: Readable.from(events, { objectMode: false }), contentLength: undefined };
  }

  /**
   * Calls and reads the events of a command as they arrive. Ending the iteration ends the command.
   * @throws ServiceError also for an `error` event
   */
  async *execEvents(
    worker: WorkerAddress,
    request: WorkerRequest,
  ): AsyncGenerator<Exclude<ExecEvent, { event: 'error' }>> {
    const { body } = await this.stream(worker, request, EVENT_STREAM_MEDIA_TYPE);
    try {
      for await (const { value } of readEvents(body)) {
        if (value?.event === 'error') throw errorOfEvent(worker, value.data);
        if (value !== undefined) yield value;
      }
    } catch (error) {
      throw this.#failure(worker, request, error);
    } finally {
      body.destroy();
    }
  }

  /** Calls and turns the connection into one of another protocol, which the caller owns. */
  async upgrade(worker: WorkerAddress, request: WorkerRequest, protocol: string): Promise<Duplex> {
    try {
      const signal = withDeadline(request.signal, request.deadlineMs);
      const token = await this.#parts.mintToken(worker.worker_id);
      return await inSpan(spanOf(worker, request), () =>
        upgradeConnection(worker, {
          path: INTERNAL_PREFIX + pathOf(request),
          headers: headersOf(request, token),
          protocol,
          signal,
        }),
      );
    } catch (error) {
      throw this.#failure(worker, request, error);
    }
  }

  async #answer<T>(
    worker: WorkerAddress,
    request: WorkerRequest,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await call(withDeadline(request.signal, request.deadlineMs));
    } catch (error) {
      throw this.#failure(worker, request, error);
    }
  }

  /** @throws BadAnswer, ServiceError, and the errors of undici */
  async #send(
    worker: WorkerAddress,
    request: WorkerRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { connections, mintToken } = this.#parts;
    return inSpan(spanOf(worker, request), async (span) => {
      const token = await mintToken(worker.worker_id);
      const response = await connections.agentFor(worker, request.kind ?? 'control').request({
        origin: worker.url,
        method: request.method,
        path: INTERNAL_PREFIX + pathOf(request),
        headers: headersOf(request, token),
        body: bodyOf(request),
        signal,
        ...(request.query === undefined ? {} : { query: request.query }),
        headersTimeout: 0,
        bodyTimeout: request.silenceMs ?? JSON_SILENCE_MS,
      });
      span?.set({ 'http.response.status_code': response.statusCode });
      if (response.statusCode < 400) return response;
      throw await errorFromWorker(worker.worker_id, response);
    });
  }

  #failure(worker: WorkerAddress, request: WorkerRequest, error: unknown): unknown {
    if (request.signal?.aborted) return request.signal.reason;
    // An upload fails with the error of its source.
    if (error instanceof ServiceError) return error;
    const bad = asBadAnswer(error);
    if (bad === undefined) return unreachableError(worker.worker_id, error);
    this.#log(worker, request, bad);
    return badResponseError(worker.worker_id, bad);
  }

  #log({ worker_id: workerId }: WorkerAddress, request: WorkerRequest, reason: BadAnswer): void {
    const { method, route, vmId } = request;
    this.#parts.logger.warn(
      { workerId, route: `${method} ${route}`, vmId, problem: reason.message },
      'invalid response from a worker',
    );
  }
}

function errorOfEvent({ worker_id: workerId }: WorkerAddress, { code, message }: ExecErrorEvent) {
  if (!isErrorCode(code)) return new BadAnswer('the error code is unknown');
  return errorFromCode(workerId, code, message);
}

/** The answers that undici refuses because they are not HTTP; undefined for every other failure. */
function asBadAnswer(error: unknown): BadAnswer | undefined {
  if (error instanceof BadAnswer) return error;
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const { code, message } = error;
  const isMalformed =
    typeof code === 'string' && (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW');
  return isMalformed ? new BadAnswer(message, { cause: error }) : undefined;
}

function pathOf({ route, vmId }: WorkerRequest): string {
  return vmId === undefined ? route : route.replace('{id}', () => encodeURIComponent(vmId));
}

/** The span of a call until its answer begins. */
function spanOf(worker: WorkerAddress, { method, route, vmId }: WorkerRequest) {
  return {
    name: `worker ${method} ${route}`,
    kind: 'client',
    attributes: {
      'http.request.method': method,
      'svc.worker_id': worker.worker_id,
      'svc.sandbox_id': vmId,
    },
  } as const;
}

function headersOf(request: WorkerRequest, token: string): Record<string, string> {
  return {
    ...callHeaders(),
    authorization: `Bearer ${token}`,
    accept: request.accept ?? 'application/json',
    ...(request.json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(request.upload === undefined ? {} : { 'content-type': 'application/octet-stream' }),
    ...(request.upload?.length === undefined
      ? {}
      : { 'content-length': String(request.upload.length) }),
  };
}

function bodyOf(request: WorkerRequest): string | Readable | null {
  if (request.upload !== undefined) return request.upload.source;
  return request.json === undefined ? null : JSON.stringify(request.json);
}
