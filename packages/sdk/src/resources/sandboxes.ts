import { randomUUID } from 'node:crypto';
import type {
  CancelReason,
  CancelResponse,
  CreateSandboxRequest,
  CreateSandboxResponse,
  DeleteSandboxResponse,
  ExecRequest,
  ExecResponse,
  ListSandboxesResponse,
  LogsQuery,
  LogsResponse,
  SandboxRecord,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';
import { type ExecStreamEvent, readExecEvents } from './exec-stream.ts';
import { Files } from './files.ts';

/** Options of a create. */
export interface CreateOptions extends CallOptions {
  /** Makes repeated creates give the same sandbox for 24 h. Default: a new key for each call. */
  readonly idempotencyKey?: string | undefined;
}

/** A list. `partial` is true when a worker did not answer and its sandboxes are shown as last known. */
export interface SandboxList {
  readonly sandboxes: SandboxRecord[];
  readonly partial: boolean;
}

const CREATE_TIMEOUT_MS = 180_000;
const DELETE_TIMEOUT_MS = 120_000;
/** What a blocking command may take beyond its own timeout, to start, be killed and be answered. */
const EXEC_GRACE_MS = 60_000;
/** No sandbox lives longer, so no command does. */
const EXEC_LONGEST_MS = 7_200_000;

/** Sandboxes: micro-VMs that run commands and hold files. */
export class Sandboxes {
  readonly files: Files;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.files = new Files(transport);
  }

  /** Makes a sandbox and resolves when it is running. Safe to repeat: the call carries an idempotency key. */
  async create(
    request: CreateSandboxRequest,
    options: CreateOptions = {},
  ): Promise<CreateSandboxResponse> {
    return this.#transport.json({
      method: 'POST',
      path: '/v1/sandboxes',
      headers: { 'idempotency-key': options.idempotencyKey ?? randomUUID() },
      json: request,
      repeatable: true,
      defaultTimeoutMs: CREATE_TIMEOUT_MS,
      options,
    });
  }

  /** The account's sandboxes, ended ones too for 15 minutes. */
  async list(options?: CallOptions): Promise<SandboxList> {
    const answer = await this.#transport.json<ListSandboxesResponse>({
      method: 'GET',
      path: '/v1/sandboxes',
      options,
    });
    if (Array.isArray(answer)) return { sandboxes: answer, partial: false };
    return { sandboxes: answer.sandboxes, partial: true };
  }

  /** One sandbox. */
  async get(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'GET', path: pathOf(id), options });
  }

  /** Destroys a sandbox, in any state, and resolves when all of it is gone. */
  async delete(id: string, options?: CallOptions): Promise<DeleteSandboxResponse> {
    return this.#transport.json({
      method: 'DELETE',
      path: pathOf(id),
      defaultTimeoutMs: DELETE_TIMEOUT_MS,
      options,
    });
  }

  /** Runs a shell command to its end. A non-zero exit is an answer, not an error. Aborting kills the command. */
  async exec(
    id: string,
    request: string | ExecRequest,
    options?: CallOptions,
  ): Promise<ExecResponse> {
    const body = execRequestOf(request);
    return this.#transport.json({
      method: 'POST',
      path: pathOf(id, 'exec'),
      json: body,
      defaultTimeoutMs: execTimeoutMs(body),
      options,
    });
  }

  /**
   * Runs a shell command and yields its output as it comes; the last event is `exit`.
   * Leaving the loop early kills the command.
   */
  async *execStream(
    id: string,
    request: string | ExecRequest,
    options: CallOptions = {},
  ): AsyncGenerator<ExecStreamEvent, void, void> {
    const body = execRequestOf(request);
    const left = new AbortController();
    const signal =
      options.signal === undefined ? left.signal : AbortSignal.any([left.signal, options.signal]);
    try {
      const answer = await this.#transport.raw({
        method: 'POST',
        path: pathOf(id, 'exec'),
        headers: { accept: 'text/event-stream' },
        json: body,
        defaultTimeoutMs: execTimeoutMs(body),
        options: { ...options, signal },
      });
      yield* readExecEvents(answer);
    } finally {
      left.abort();
    }
  }

  /** Freezes a running sandbox: memory and disk stay, the CPU is free. */
  async pause(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'POST', path: pathOf(id, 'pause'), options });
  }

  /** Lets a paused sandbox go on. */
  async resume(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'POST', path: pathOf(id, 'resume'), options });
  }

  /** Asks the clients attached to a sandbox to stop their work. Ends nothing by itself. */
  async cancel(id: string, reason?: CancelReason, options?: CallOptions): Promise<CancelResponse> {
    return this.#transport.json({
      method: 'POST',
      path: pathOf(id, 'cancel'),
      ...(reason === undefined ? {} : { json: { reason } }),
      options,
    });
  }

  /** The tail of the agent's log. */
  async logs(id: string, query: LogsQuery = {}, options?: CallOptions): Promise<LogsResponse> {
    return this.#transport.json({ method: 'GET', path: pathOf(id, 'logs'), query, options });
  }
}

function pathOf(id: string, operation?: string): string {
  const path = `/v1/sandboxes/${encodeURIComponent(id)}`;
  return operation === undefined ? path : `${path}/${operation}`;
}

function execRequestOf(request: string | ExecRequest): ExecRequest {
  return typeof request === 'string' ? { command: request } : request;
}

function execTimeoutMs(request: ExecRequest): number {
  const own =
    request.timeout_seconds === undefined ? EXEC_LONGEST_MS : request.timeout_seconds * 1000;
  return Math.min(own, EXEC_LONGEST_MS) + EXEC_GRACE_MS;
}
