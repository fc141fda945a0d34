import type { Duplex } from 'node:stream';
import {
  type CancelReason,
  CancelResponse,
  type ConfigUpdate,
  type EndReason,
  EVENT_STREAM_MEDIA_TYPE,
  type ExecRequest,
  knownSandbox,
  LIMITS,
  type LogTail,
  OCTET_STREAM_MEDIA_TYPE,
  type PlaceSandboxRequest,
  PORT_PROTOCOL,
  type ReportedSandbox,
  UploadResponse,
  WorkerLog,
  WorkerSandbox,
  WorkerSandboxList,
} from '@svc/contract';
import type { LogEnd } from '@svc/service-kit/log-tail';
import { Compile } from 'typebox/compile';
import type { ExpectedJson } from './read-answer.ts';
import type { WorkerAddress } from './worker-address.ts';
import type { WorkerClient, WorkerRequest, WorkerStream } from './worker-client.ts';

const SECOND_MS = 1000;
const DEADLINES = {
  create: 120 * SECOND_MS,
  destroy: 60 * SECOND_MS,
  list: 3 * SECOND_MS,
  quick: 30 * SECOND_MS,
  /** A command begins when its sandbox is resumed and has its workspace, of which a large one takes minutes to load. */
  execBegin: 35 * 60 * SECOND_MS,
  transfer: 6 * 3600 * SECOND_MS,
} as const;
/** Workers send a comment into an idle stream every 15 seconds. */
const STREAM_SILENCE_MS = 120 * SECOND_MS;
const TRANSFER_SILENCE_MS = 60 * SECOND_MS;

/** For answers without text of a guest. */
const SMALL_BYTES = 64 * 1024;
/** Of a record in a list, which has text of less than 1.5 KiB and, in quarantine, a placement. */
const RECORD_BYTES = 4096;
const LIST_BYTES_MAX = 16 * 1024 * 1024;

/** For how long a caller waits for the end of a sandbox. */
export interface DestroyOptions {
  /** In ms. Default: a minute. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

const ANSWERS = {
  sandbox: { status: 200, form: Compile(WorkerSandbox), maxBytes: SMALL_BYTES },
  list: { status: 200, form: Compile(WorkerSandboxList) },
  logs: {
    status: 200,
    form: Compile(WorkerLog),
    maxBytes: 2 * LIMITS.logBytesMax,
    problemOf: logProblem,
  },
  cancel: { status: 200, form: Compile(CancelResponse), maxBytes: SMALL_BYTES },
  upload: { status: 200, form: Compile(UploadResponse), maxBytes: SMALL_BYTES },
} as const;

/** States before a sandbox runs. */
const STARTING: readonly string[] = ['creating', 'configuring', 'booting'];

type Rest = Omit<WorkerRequest, 'method' | 'route' | 'vmId'>;

/** The operations of one worker. */
export class WorkerApi {
  readonly #client: WorkerClient;
  readonly #worker: WorkerAddress;

  constructor(client: WorkerClient, worker: WorkerAddress) {
    this.#client = client;
    this.#worker = worker;
  }

  async create(request: PlaceSandboxRequest, signal: AbortSignal): Promise<WorkerSandbox> {
    const created = await this.#client.call(
      this.#worker,
      {
        method: 'POST',
        route: '/sandboxes',
        json: request,
        signal,
        deadlineMs: DEADLINES.create,
      },
      {
        ...ANSWERS.sandbox,
        status: 201,
        problemOf: (sandbox) => createdProblem(sandbox, request),
      },
    );
    return knownSandbox(created);
  }

  /** The sandboxes of a tenant that may have `most` at a time, and those that ended last. */
  list(tenantId: string, most: number, signal: AbortSignal): Promise<WorkerSandbox[]> {
    const request = {
      method: 'GET',
      route: '/sandboxes',
      query: { tenant_id: tenantId },
      signal,
      deadlineMs: DEADLINES.list,
    } as const;
    const isForeign = (sandbox: ReportedSandbox) => sandbox.tenant_id !== tenantId;
    return this.#client
      .call(this.#worker, request, {
        ...ANSWERS.list,
        maxBytes: Math.min(RECORD_BYTES * (most + LIMITS.destroyedRecordsListed), LIST_BYTES_MAX),
        problemOf: ({ sandboxes }) =>
          sandboxes.some(isForeign) ? 'the list holds a sandbox of another tenant' : undefined,
      })
      .then(({ sandboxes }) => sandboxes.map(knownSandbox));
  }

  /**
   * Ends a sandbox. The teardown goes on when the caller no longer waits, at `signal` or after `waitMs`: one that is partial is
   * of no use.
   */
  async destroy(
    vmId: string,
    reason: EndReason,
    { waitMs = DEADLINES.destroy, signal }: DestroyOptions = {},
  ): Promise<void> {
    await this.#call(
      'DELETE',
      '/sandboxes/{id}',
      vmId,
      {
        kind: 'deletion',
        query: { reason },
        deadlineMs: waitMs,
        ...(signal === undefined ? {} : { signal }),
      },
      {
        ...ANSWERS.sandbox,
        problemOf: (sandbox) =>
          otherSandbox(sandbox, vmId) ??
          (sandbox.state === 'destroyed'
            ? undefined
            : `the sandbox is ${sandbox.state} after its end`),
      },
    );
  }

  /** The events of a command, for a caller who waits for its end. */
  exec(vmId: string, request: ExecRequest, signal: AbortSignal) {
    return this.#client.execEvents(this.#worker, execRequest(vmId, request, signal));
  }

  /** The server-sent events of a command, checked. */
  streamExec(vmId: string, request: ExecRequest, signal: AbortSignal): Promise<WorkerStream> {
    return this.#client.streamEvents(this.#worker, execRequest(vmId, request, signal));
  }

  /** The end of an agent's log, with this tail and all that follows the first `knownBytes` of it, if it is that long. */
  async logs(
    vmId: string,
    tail: LogTail,
    knownBytes: number | undefined,
    signal: AbortSignal,
  ): Promise<LogEnd> {
    const known = knownBytes === undefined ? {} : { known_bytes: knownBytes };
    const answer = await this.#call(
      'GET',
      '/sandboxes/{id}/logs',
      vmId,
      {
        kind: 'work',
        query: { ...tail, ...known },
        signal,
        deadlineMs: DEADLINES.quick,
      },
      ANSWERS.logs,
    );
    return { bytes: Buffer.from(answer.end, 'base64'), totalBytes: answer.total_bytes };
  }

  download(vmId: string, path: string, signal: AbortSignal): Promise<WorkerStream> {
    return this.#client.stream(
      this.#worker,
      {
        method: 'GET',
        kind: 'work',
        route: '/sandboxes/{id}/files',
        vmId,
        query: { path },
        accept: `${OCTET_STREAM_MEDIA_TYPE}, application/json`,
        signal,
        deadlineMs: DEADLINES.quick,
        silenceMs: TRANSFER_SILENCE_MS,
      },
      OCTET_STREAM_MEDIA_TYPE,
    );
  }

  async upload(
    vmId: string,
    path: string,
    upload: NonNullable<WorkerRequest['upload']>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#call(
      'POST',
      '/sandboxes/{id}/files',
      vmId,
      {
        kind: 'work',
        query: { path },
        upload,
        signal,
        deadlineMs: DEADLINES.transfer,
      },
      ANSWERS.upload,
    );
  }

  /** A connection to a server on the loopback address of the guest. The caller owns it. */
  connectPort(vmId: string, port: number, signal: AbortSignal): Promise<Duplex> {
    return this.#client.upgrade(
      this.#worker,
      {
        method: 'GET',
        route: `/sandboxes/{id}/ports/${port}`,
        vmId,
        signal,
        deadlineMs: DEADLINES.quick,
      },
      PORT_PROTOCOL,
    );
  }

  cancel(vmId: string, reason: CancelReason, signal: AbortSignal): Promise<CancelResponse> {
    return this.#call(
      'POST',
      '/sandboxes/{id}/cancel',
      vmId,
      {
        kind: 'work',
        json: { reason },
        signal,
        deadlineMs: DEADLINES.quick,
      },
      {
        ...ANSWERS.cancel,
        problemOf: (answer) =>
          otherSandbox(answer, vmId) ??
          (answer.reason === reason ? undefined : 'the answer names another reason'),
      },
    );
  }

  /** Tells the worker that a secret bundle of the session was rotated. */
  configUpdate(vmId: string, update: ConfigUpdate, signal: AbortSignal): Promise<void> {
    return this.#client.callWithoutAnswer(this.#worker, {
      method: 'POST',
      route: '/sandboxes/{id}/config-update',
      vmId,
      json: update,
      signal,
      deadlineMs: DEADLINES.quick,
    });
  }

  /** Goes on when the caller leaves, so that the ledger gets the outcome. */
  pause(vmId: string): Promise<WorkerSandbox> {
    return this.#power(vmId, 'pause');
  }

  /** As {@link pause}. */
  resume(vmId: string): Promise<WorkerSandbox> {
    return this.#power(vmId, 'resume');
  }

  async #power(vmId: string, change: 'pause' | 'resume'): Promise<WorkerSandbox> {
    const changed = await this.#call(
      'POST',
      `/sandboxes/{id}/${change}`,
      vmId,
      { kind: 'work', deadlineMs: DEADLINES.destroy },
      {
        ...ANSWERS.sandbox,
        problemOf: (sandbox) => otherSandbox(sandbox, vmId),
      },
    );
    return knownSandbox(changed);
  }

  #call<T>(
    method: WorkerRequest['method'],
    route: string,
    vmId: string,
    rest: Rest,
    expected: ExpectedJson<T>,
  ): Promise<T> {
    return this.#client.call(this.#worker, { method, route, vmId, ...rest }, expected);
  }
}

function execRequest(vmId: string, request: ExecRequest, signal: AbortSignal): WorkerRequest {
  return {
    method: 'POST',
    kind: 'work',
    route: '/sandboxes/{id}/exec',
    vmId,
    json: request,
    accept: EVENT_STREAM_MEDIA_TYPE,
    signal,
    deadlineMs: DEADLINES.execBegin,
    silenceMs: STREAM_SILENCE_MS,
  };
}

function logProblem({ end, total_bytes }: WorkerLog): string | undefined {
  const { length } = Buffer.from(end, 'base64');
  if (length > LIMITS.logBytesMax) return 'the log is longer than any request can ask for';
  return length > total_bytes ? 'the end of the log is longer than the log' : undefined;
}

function createdProblem(
  sandbox: ReportedSandbox,
  request: PlaceSandboxRequest,
): string | undefined {
  const other = otherSandbox(sandbox, request.vm_id);
  if (other !== undefined) return other;
  if (sandbox.generation !== request.generation) return 'the sandbox has another generation';
  if (sandbox.tenant_id !== request.tenant_id) return 'the sandbox belongs to another tenant';
  return STARTING.includes(sandbox.state) ? `the sandbox is still ${sandbox.state}` : undefined;
}

function otherSandbox(
  { vm_id: vmId }: { readonly vm_id: string },
  asked: string,
): string | undefined {
  return vmId === asked ? undefined : 'the answer is about another sandbox';
}
