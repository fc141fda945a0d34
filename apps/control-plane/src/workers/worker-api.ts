import {
  type CancelReason,
  type CancelResponse,
  type EndReason,
  EVENT_STREAM_MEDIA_TYPE,
  type ExecRequest,
  type ExecResponse,
  LIMITS,
  type LogsResponse,
  type LogTail,
  OCTET_STREAM_MEDIA_TYPE,
  type PlaceSandboxRequest,
  type WorkerSandbox,
  type WorkerSandboxList,
} from '@svc/contract';
import type { WorkerAddress } from './worker-address.ts';
import type { WorkerClient, WorkerRequest, WorkerStream } from './worker-client.ts';

const SECOND_MS = 1000;
const DEADLINES = {
  create: 120 * SECOND_MS,
  destroy: 60 * SECOND_MS,
  list: 3 * SECOND_MS,
  quick: 30 * SECOND_MS,
  /** A command without a limit of its own ends with its sandbox. */
  exec: (LIMITS.execTimeoutSecondsMax + 60) * SECOND_MS,
  transfer: 6 * 3600 * SECOND_MS,
} as const;
/** Workers send a comment when a stream has nothing to say for a while. */
const STREAM_SILENCE_MS = 120 * SECOND_MS;
const TRANSFER_SILENCE_MS = 60 * SECOND_MS;

/** The operations of one worker. */
export class WorkerApi {
  readonly #client: WorkerClient;
  readonly #worker: WorkerAddress;

  constructor(client: WorkerClient, worker: WorkerAddress) {
    this.#client = client;
    this.#worker = worker;
  }

  create(request: PlaceSandboxRequest, signal: AbortSignal): Promise<WorkerSandbox> {
    return this.#call('POST', '/sandboxes', {
      json: request,
      signal,
      deadlineMs: DEADLINES.create,
    });
  }

  async list(tenantId: string, signal: AbortSignal): Promise<WorkerSandbox[]> {
    const { sandboxes } = await this.#call<WorkerSandboxList>('GET', '/sandboxes', {
      query: { tenant_id: tenantId },
      signal,
      deadlineMs: DEADLINES.list,
    });
    return sandboxes;
  }

  /** Not given up when the caller leaves: half a teardown helps nobody. */
  destroy(vmId: string, reason: EndReason): Promise<WorkerSandbox> {
    return this.#call('DELETE', sandboxPath(vmId), {
      query: { reason },
      deadlineMs: DEADLINES.destroy,
    });
  }

  exec(vmId: string, request: ExecRequest, signal: AbortSignal): Promise<ExecResponse> {
    return this.#call('POST', `${sandboxPath(vmId)}/exec`, {
      json: request,
      signal,
      deadlineMs: DEADLINES.exec,
    });
  }

  streamExec(vmId: string, request: ExecRequest, signal: AbortSignal): Promise<WorkerStream> {
    return this.#stream('POST', `${sandboxPath(vmId)}/exec`, {
      json: request,
      accept: EVENT_STREAM_MEDIA_TYPE,
      signal,
      deadlineMs: DEADLINES.quick,
      silenceMs: STREAM_SILENCE_MS,
    });
  }

  logs(vmId: string, tail: LogTail, signal: AbortSignal): Promise<LogsResponse> {
    return this.#call('GET', `${sandboxPath(vmId)}/logs`, {
      query: { ...tail },
      signal,
      deadlineMs: DEADLINES.quick,
    });
  }

  download(vmId: string, path: string, signal: AbortSignal): Promise<WorkerStream> {
    return this.#stream('GET', `${sandboxPath(vmId)}/files`, {
      query: { path },
      accept: `${OCTET_STREAM_MEDIA_TYPE}, application/json`,
      signal,
      deadlineMs: DEADLINES.quick,
      silenceMs: TRANSFER_SILENCE_MS,
    });
  }

  async upload(
    vmId: string,
    path: string,
    upload: NonNullable<WorkerRequest['upload']>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#call('POST', `${sandboxPath(vmId)}/files`, {
      query: { path },
      upload,
      signal,
      deadlineMs: DEADLINES.transfer,
    });
  }

  cancel(vmId: string, reason: CancelReason, signal: AbortSignal): Promise<CancelResponse> {
    return this.#call('POST', `${sandboxPath(vmId)}/cancel`, {
      json: { reason },
      signal,
      deadlineMs: DEADLINES.quick,
    });
  }

  /** Secret bundles of a sandbox's session were rotated; these keys are new. */
  async configUpdate(vmId: string, keys: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#call('POST', `${sandboxPath(vmId)}/config-update`, {
      json: { keys },
      signal,
      deadlineMs: DEADLINES.quick,
    });
  }

  /** Not given up when the caller leaves, so that the ledger hears how it ended. */
  pause(vmId: string): Promise<WorkerSandbox> {
    return this.#call('POST', `${sandboxPath(vmId)}/pause`, { deadlineMs: DEADLINES.destroy });
  }

  /** As {@link pause}. */
  resume(vmId: string): Promise<WorkerSandbox> {
    return this.#call('POST', `${sandboxPath(vmId)}/resume`, { deadlineMs: DEADLINES.destroy });
  }

  #call<T>(
    method: WorkerRequest['method'],
    path: string,
    rest: Omit<WorkerRequest, 'method' | 'path'>,
  ): Promise<T> {
    return this.#client.call<T>(this.#worker, { method, path, ...rest });
  }

  #stream(
    method: WorkerRequest['method'],
    path: string,
    rest: Omit<WorkerRequest, 'method' | 'path'>,
  ): Promise<WorkerStream> {
    return this.#client.stream(this.#worker, { method, path, ...rest });
  }
}

function sandboxPath(vmId: string): string {
  return `/sandboxes/${encodeURIComponent(vmId)}`;
}
