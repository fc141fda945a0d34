import type { Readable } from 'node:stream';
import { LIMITS, type LogsResponse, type LogTail, ServiceError } from '@svc/contract';
import { type LogEnd, tailOf } from '@svc/service-kit/log-tail';
import type { LogExtent, SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { Fleet } from '../workers/fleet.ts';
import type { WorkerApi } from '../workers/worker-api.ts';
import { findSandbox } from './find.ts';
import type { TenantOperations } from './tenant-operations.ts';
import { USABLE } from './usable.ts';

const NO_LOG: LogsResponse = { content: '', truncated: false, total_bytes: 0 };

/** A log as its worker sends it. */
export interface SentLog {
  readonly totalBytes: number;
  /** The last bytes of the log. */
  readonly end: Readable;
}

/** Reads of a log that races with others, until it can be stored. */
const ATTEMPTS = 3;

/**
 * The logs of agents. That of a live agent is in its sandbox, and everything that a customer is shown of it is stored
 * before. The worker copies the whole log to the ledger once the agent has exited or the sandbox ends. What is stored
 * outlasts the worker.
 */
export class SandboxLogs {
  readonly #store: Pick<Store, 'sandboxes' | 'agentLogs'>;
  readonly #fleet: Fleet;
  readonly #calls: TenantOperations;

  constructor(
    store: Pick<Store, 'sandboxes' | 'agentLogs'>,
    fleet: Fleet,
    calls: TenantOperations,
  ) {
    this.#store = store;
    this.#fleet = fleet;
    this.#calls = calls;
  }

  /**
   * The tail of the agent's log, as long as the sandbox has a record; empty before any agent has run. Without its worker,
   * what of the log is stored.
   * @throws ServiceError `sandbox_not_found`, `logs_unavailable`, `worker_bad_response`, `too_many_operations`
   */
  async read(
    caller: Caller,
    vmId: string,
    tail: LogTail,
    signal: AbortSignal,
  ): Promise<LogsResponse> {
    const row = await findSandbox(this.#store, caller, vmId);
    if (row.agent === null) return NO_LOG;
    const place = { tenantId: caller.tenantId, workerId: row.worker_id };
    return this.#calls.run(place, () => this.#read(row, tail, signal));
  }

  async #read(row: SandboxRow, tail: LogTail, signal: AbortSignal): Promise<LogsResponse> {
    const { vm_id: vmId } = row;
    const stored = await this.#store.agentLogs.extent(vmId);
    if (!USABLE.includes(row.state) && stored?.isFinal) {
      const kept = await this.#kept(vmId, tail);
      if (kept !== undefined) return kept;
    }
    if (row.running_at === null) return NO_LOG;
    try {
      const show = (worker: WorkerApi) => this.#show(worker, vmId, tail, stored, signal);
      return tailOf(await this.#fleet.call(row.worker_id, show, { signal }), tail);
    } catch (error) {
      if (signal.aborted || !isUnavailable(error)) throw error;
      // The worker may have sent the log in the meantime, or when the agent exited.
      const kept = await this.#kept(vmId, tail);
      if (kept !== undefined) return kept;
      throw unavailable(error);
    }
  }

  /** Reads a log on its worker, and stores what of it is not stored yet. */
  async #show(
    worker: WorkerApi,
    vmId: string,
    tail: LogTail,
    stored: LogExtent | undefined,
    signal: AbortSignal,
  ): Promise<LogEnd> {
    let known = stored;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const log = await worker.logs(vmId, tail, known?.totalBytes, signal);
      if (isStored(log, known)) return log;
      const outcome = await this.#store.agentLogs.addShown(vmId, log, known);
      if (outcome !== 'apart') return log;
      known = await this.#store.agentLogs.extent(vmId);
    }
    throw unavailable(undefined);
  }

  /** Stores a log for the worker of its sandbox. @throws ServiceError `sandbox_not_found`, `payload_too_large` */
  async keep(workerId: string, vmId: string, { totalBytes, end }: SentLog): Promise<void> {
    const bytes = await readAll(end);
    if (totalBytes < bytes.length) throw new ServiceError('validation_failed');
    const isKept =
      !vmId.includes('\0') &&
      (await this.#store.agentLogs.put(workerId, vmId, { bytes, totalBytes }));
    if (!isKept) throw new ServiceError('sandbox_not_found');
  }

  async #kept(vmId: string, tail: LogTail): Promise<LogsResponse | undefined> {
    const log = await this.#store.agentLogs.find(vmId);
    if (log === undefined) return undefined;
    const answer = tailOf(log, tail);
    // The log may have grown since it was shown.
    return { ...answer, truncated: answer.truncated || !log.isFinal };
  }
}

/** Whether nothing of a log is to be stored. */
function isStored({ bytes, totalBytes }: LogEnd, stored: LogExtent | undefined): boolean {
  if (bytes.length === 0) return true;
  return totalBytes === stored?.totalBytes && totalBytes - bytes.length >= stored.firstByte;
}

function unavailable(cause: unknown): ServiceError {
  return new ServiceError('logs_unavailable', undefined, { cause });
}

/** Whether the worker does not have the log, or cannot be asked. A worker that breaks the contract is another matter. */
function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code !== 'worker_bad_response';
}

async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LIMITS.logBytesMax) throw new ServiceError('payload_too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
