import { randomUUID } from 'node:crypto';
import type {
  CancelReason,
  CancelResponse,
  CreatePortLinkRequest,
  CreateSandboxRequest,
  CreateSandboxResponse,
  DeleteSandboxResponse,
  ExecRequest,
  ExecResponse,
  ListSandboxesQuery,
  ListSandboxesResponse,
  LogsQuery,
  LogsResponse,
  PortLink,
  SandboxAccess,
  SandboxRecord,
} from '@svc/contract';
import { SessionConnection } from '../sessions/connection.ts';
import { agentEnded } from '../sessions/ends.ts';
import type { ConnectOptions } from '../sessions/options.ts';
import type { CallOptions, Transport } from '../transport/request.ts';
import { type ExecStreamEvent, readExecEvents } from './exec-stream.ts';
import { Files } from './files.ts';

/** Options for creating a sandbox or a session. */
export interface CreateOptions extends CallOptions {
  /** Repeated calls with the same key return the first result for 24 hours. Default: a new key for each call. */
  readonly idempotencyKey?: string | undefined;
}

/** A list. `partial` is true when a worker did not respond and its sandboxes are shown in their last known state. */
export interface SandboxList {
  readonly sandboxes: SandboxRecord[];
  readonly partial: boolean;
}

const CREATE_TIMEOUT_MS = 180_000;
/** The last save of a workspace may take five minutes. */
const DELETE_TIMEOUT_MS = 480_000;
/** The time that a blocking command may take beyond its own timeout to start, be killed and return its result. */
const EXEC_GRACE_MS = 60_000;
/** Time limit for finding out whether an unresponsive agent has ended. */
const LOOK_TIMEOUT_MS = 5_000;
/** The longest lifetime of a sandbox, and so of a command. */
const EXEC_LONGEST_MS = 7_200_000;

/** Sandboxes: micro-VMs that run commands and hold files. */
export class Sandboxes {
  readonly files: Files;
  readonly #transport: Transport;
  readonly #ca: string | Uint8Array | undefined;

  constructor(transport: Transport, ca: string | Uint8Array | undefined) {
    this.#transport = transport;
    this.#ca = ca;
    this.files = new Files(transport);
  }

  /**
   * Creates a sandbox and resolves when it is running. Safe to repeat: the call carries an idempotency key. The service
   * goes on with it after an abort or a timeout; the same call with the same `idempotencyKey` returns the result.
   */
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

  /** The account's sandboxes, including the last 100 of those that ended in the last 15 minutes. */
  async list(options?: CallOptions): Promise<SandboxList> {
    return this.#list({}, options);
  }

  /**
   * The account's sandboxes, including all that ended in the last 15 minutes, page by page in the order of the ids.
   * @param limit the most records of a page, up to 100
   */
  async *pages(limit: number, options?: CallOptions): AsyncGenerator<SandboxList> {
    for (let query: ListSandboxesQuery = { limit }; ; ) {
      const page = await this.#list(query, options);
      yield page;
      const last = page.sandboxes.at(-1);
      if (last === undefined || page.sandboxes.length < limit) return;
      query = { limit, after: last.vm_id };
    }
  }

  /** One sandbox. */
  async get(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'GET', path: pathOf(id), options });
  }

  /** Destroys a sandbox in any state and resolves when all its resources are released. */
  async delete(id: string, options?: CallOptions): Promise<DeleteSandboxResponse> {
    return this.#transport.json({
      method: 'DELETE',
      path: pathOf(id),
      defaultTimeoutMs: DELETE_TIMEOUT_MS,
      options,
    });
  }

  /**
   * Runs a shell command to completion. The result has `stdout` and `stderr` apart, and both together as `output`. A
   * non-zero exit code is a result, not an error. Aborting kills the command.
   */
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
   * Runs a shell command and yields its output as it arrives. The last event is `exit`.
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

  /** Freezes a running sandbox: it keeps its memory and disk but uses no CPU. */
  async pause(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'POST', path: pathOf(id, 'pause'), options });
  }

  /** Resumes a paused sandbox. */
  async resume(id: string, options?: CallOptions): Promise<SandboxRecord> {
    return this.#transport.json({ method: 'POST', path: pathOf(id, 'resume'), options });
  }

  /**
   * Connects to the agent of a sandbox: gives tasks to one that was created without `task`, or watches another. The
   * connection is one of a session, and ends with the agent. `afterSeq: 0` shows everything since its start.
   */
  async connect(
    id: string,
    options: ConnectOptions & Pick<CallOptions, 'timeoutMs'> = {},
  ): Promise<SessionConnection> {
    const { signal, timeoutMs } = options;
    const address = await this.access(id, { signal, timeoutMs });
    return new SessionConnection(address, options, {
      ca: this.#ca,
      traceparent: () => this.#transport.traceparent,
      hasEnded: async () => {
        const { agent_status } = await this.get(id, { timeoutMs: LOOK_TIMEOUT_MS });
        return agent_status !== 'running';
      },
      ended: agentEnded,
    });
  }

  /** The WebSocket URL and token of the agent of a sandbox, for a client of your own. */
  async access(id: string, options?: CallOptions): Promise<SandboxAccess> {
    return this.#transport.json({ method: 'POST', path: pathOf(id, 'connect'), options });
  }

  /**
   * A link that opens one port of a sandbox without the API key, for a browser or any other client. Treat it as a
   * secret: it ends with its time, with the sandbox, and with the API key of this client.
   */
  async link(id: string, request: CreatePortLinkRequest, options?: CallOptions): Promise<PortLink> {
    return this.#transport.json({
      method: 'POST',
      path: pathOf(id, 'links'),
      json: request,
      options,
    });
  }

  /** Asks the clients attached to a sandbox to stop their work. Does not end anything itself. */
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

  async #list(query: ListSandboxesQuery, options?: CallOptions): Promise<SandboxList> {
    const answer = await this.#transport.json<ListSandboxesResponse>({
      method: 'GET',
      path: '/v1/sandboxes',
      query,
      options,
    });
    if (Array.isArray(answer)) return { sandboxes: answer, partial: false };
    return { sandboxes: answer.sandboxes, partial: true };
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
