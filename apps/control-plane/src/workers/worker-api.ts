import {
  type CancelReason,
  CancelResponse,
  type ConfigUpdate,
  type EndReason,
  EVENT_STREAM_MEDIA_TYPE,
  type ExecRequest,
  ExecResponse,
  LIMITS,
  LogsResponse,
  type LogTail,
  OCTET_STREAM_MEDIA_TYPE,
  type PlaceSandboxRequest,
  UploadResponse,
  WorkerSandbox,
  WorkerSandboxList,
} from '@svc/contract';
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
  /** A command without a time limit ends with its sandbox. */
  exec: (LIMITS.execTimeoutSecondsMax + 60) * SECOND_MS,
  transfer: 6 * 3600 * SECOND_MS,
} as const;
/** Workers send a comment into an idle stream every 15 seconds. */
const STREAM_SILENCE_MS = 120 * SECOND_MS;
const TRANSFER_SILENCE_MS = 60 * SECOND_MS;

/** For answers without text of a guest. */
const SMALL_BYTES = 64 * 1024;
/** A tenant may have thousands of sandboxes on one worker. */
const LIST_BYTES = 16 * 1024 * 1024;

const ANSWERS = {
  sandbox: { status: 200, form: Compile(WorkerSandbox), maxBytes: SMALL_BYTES },
  list: { status: 200, form: Compile(WorkerSandboxList), maxBytes: LIST_BYTES },
  exec: {
    status: 200,
    form: Compile(ExecResponse),
    // The response contains every part of the output twice.
    maxBytes: jsonBytesOf(2 * LIMITS.execOutputBytes),
  },
  logs: { status: 200, form: Compile(LogsResponse), maxBytes: jsonBytesOf(LIMITS.logBytesMax) },
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

  create(request: PlaceSandboxRequest, signal: AbortSignal): Promise<WorkerSandbox> {
    return this.#client.call(
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
  }

  list(tenantId: string, signal: AbortSignal): Promise<WorkerSandboxList['sandboxes']> {
    const request = {
      method: 'GET',
      route: '/sandboxes',
      query: { tenant_id: tenantId },
      signal,
      deadlineMs: DEADLINES.list,
    } as const;
    const isForeign = (sandbox: WorkerSandbox) => sandbox.tenant_id !== tenantId;
    return this.#client
      .call(this.#worker, request, {
        ...ANSWERS.list,
        problemOf: ({ sandboxes }) =>
          sandboxes.some(isForeign) ? 'the list holds a sandbox of another tenant' : undefined,
      })
      .then(({ sandboxes }) => sandboxes);
  }

  /** Goes on when the caller leaves: a partial teardown is of no use. */
  destroy(vmId: string, reason: EndReason): Promise<WorkerSandbox> {
    return this.#call(
      'DELETE',
      '/sandboxes/{id}',
      vmId,
      {
        query: { reason },
        deadlineMs: DEADLINES.destroy,
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

  exec(vmId: string, request: ExecRequest, signal: AbortSignal): Promise<ExecResponse> {
    return this.#call(
      'POST',
      '/sandboxes/{id}/exec',
      vmId,
      {
        json: request,
        signal,
        deadlineMs: DEADLINES.exec,
      },
      ANSWERS.exec,
    );
  }

  streamExec(vmId: string, request: ExecRequest, signal: AbortSignal): Promise<WorkerStream> {
    return this.#client.streamEvents(this.#worker, {
      method: 'POST',
      route: '/sandboxes/{id}/exec',
      vmId,
      json: request,
      accept: EVENT_STREAM_MEDIA_TYPE,
      signal,
      deadlineMs: DEADLINES.quick,
      silenceMs: STREAM_SILENCE_MS,
    });
  }

  logs(vmId: string, tail: LogTail, signal: AbortSignal): Promise<LogsResponse> {
    return this.#call(
      'GET',
      '/sandboxes/{id}/logs',
      vmId,
      {
        query: { ...tail },
        signal,
        deadlineMs: DEADLINES.quick,
      },
      ANSWERS.logs,
    );
  }

  download(vmId: string, path: string, signal: AbortSignal): Promise<WorkerStream> {
    return this.#client.stream(
      this.#worker,
      {
        method: 'GET',
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
        query: { path },
        upload,
        signal,
        deadlineMs: DEADLINES.transfer,
      },
      ANSWERS.upload,
    );
  }

  cancel(vmId: string, reason: CancelReason, signal: AbortSignal): Promise<CancelResponse> {
    return this.#call(
      'POST',
      '/sandboxes/{id}/cancel',
      vmId,
      {
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

  #power(vmId: string, change: 'pause' | 'resume'): Promise<WorkerSandbox> {
    return this.#call(
      'POST',
      `/sandboxes/{id}/${change}`,
      vmId,
      { deadlineMs: DEADLINES.destroy },
      {
        ...ANSWERS.sandbox,
        problemOf: (sandbox) => otherSandbox(sandbox, vmId),
      },
    );
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

/** Maximum length of a JSON response with this much text, whose bytes may each be escaped as six. */
function jsonBytesOf(textBytes: number): number {
  return 6 * textBytes + SMALL_BYTES;
}

function createdProblem(sandbox: WorkerSandbox, request: PlaceSandboxRequest): string | undefined {
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
