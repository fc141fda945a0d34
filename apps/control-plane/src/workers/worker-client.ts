import type { Readable } from 'node:stream';
import { INTERNAL_PREFIX, ServiceError } from '@svc/contract';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Dispatcher } from 'undici';
import type { WorkerConnections } from './connections.ts';
import type { WorkerAddress } from './worker-address.ts';
import { errorFromWorker, unreachableError } from './worker-errors.ts';

const LONGEST_PROBLEM_BYTES = 64 * 1024;

/** One request to a worker. */
export interface WorkerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the internal prefix, with every segment encoded. */
  readonly path: string;
  readonly query?: Record<string, string | number>;
  readonly json?: unknown;
  /** Bytes to send, with their length when it is known. */
  readonly upload?: { readonly source: Readable; readonly length: number | undefined };
  readonly accept?: string;
  /** Gives the call up: the worker sees its caller leave. */
  readonly signal?: AbortSignal;
  /** Until the answer is complete or, for a stream, has begun. */
  readonly deadlineMs: number;
  /** Longest silence within the answer of a stream. */
  readonly silenceMs?: number;
}

/** An answer whose body is still to be read. */
export interface WorkerStream {
  readonly body: Readable;
  readonly contentLength: number | undefined;
}

/**
 * Speaks the internal API of workers. Whatever a worker refuses is thrown with its own code;
 * whoever does not answer is `worker_unreachable`; a caller that left is thrown as its signal says.
 */
export class WorkerClient {
  readonly #connections: WorkerConnections;
  readonly #mintToken: (workerId: string) => Promise<string>;

  constructor(connections: WorkerConnections, mintToken: (workerId: string) => Promise<string>) {
    this.#connections = connections;
    this.#mintToken = mintToken;
  }

  /** Calls and reads the whole JSON answer; undefined where the worker has nothing to say. */
  async call<T>(worker: WorkerAddress, request: WorkerRequest): Promise<T> {
    const signal = withDeadline(request.signal, request.deadlineMs);
    const response = await this.#send(worker, request, signal);
    try {
      const text = await response.body.text();
      return (text === '' ? undefined : JSON.parse(text)) as T;
    } catch (error) {
      throw failure(worker, request, error);
    }
  }

  /** Calls and hands the answer over as it comes. Destroying the body ends the call. */
  async stream(worker: WorkerAddress, request: WorkerRequest): Promise<WorkerStream> {
    const started = new AbortController();
    const timer = setTimeout(() => started.abort(), request.deadlineMs);
    const signal = AbortSignal.any([started.signal, ...(request.signal ? [request.signal] : [])]);
    try {
      const { body, headers } = await this.#send(worker, request, signal);
      const length = Number(headers['content-length'] ?? Number.NaN);
      return { body, contentLength: Number.isSafeInteger(length) ? length : undefined };
    } finally {
      clearTimeout(timer);
    }
  }

  async #send(
    worker: WorkerAddress,
    request: WorkerRequest,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const token = await this.#mintToken(worker.worker_id);
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#connections.agentFor(worker).request({
        origin: worker.url,
        method: request.method,
        path: INTERNAL_PREFIX + request.path,
        headers: headersOf(request, token),
        body: bodyOf(request),
        signal,
        ...(request.query === undefined ? {} : { query: request.query }),
        headersTimeout: 0,
        bodyTimeout: request.silenceMs ?? 0,
      });
    } catch (error) {
      throw failure(worker, request, error);
    }
    if (response.statusCode < 400) return response;
    throw errorFromWorker(worker.worker_id, response.statusCode, await readProblem(response));
  }
}

function headersOf(request: WorkerRequest, token: string): Record<string, string> {
  return {
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

async function readProblem(response: Dispatcher.ResponseData): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > LONGEST_PROBLEM_BYTES) break;
    }
  } catch {
    // The status alone has to do.
  }
  return Buffer.concat(chunks).toString('utf8');
}

function failure(worker: WorkerAddress, request: WorkerRequest, error: unknown): unknown {
  if (request.signal?.aborted) return request.signal.reason;
  // What reading the upload failed with is its own reason.
  if (error instanceof ServiceError) return error;
  return unreachableError(worker.worker_id, error);
}
