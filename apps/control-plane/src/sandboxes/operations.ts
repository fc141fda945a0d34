import type { Duplex, Readable } from 'node:stream';
import {
  type CancelReason,
  type CancelResponse,
  checkPath,
  type ExecRequest,
  isServiceError,
  type SandboxState,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import type { SandboxRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { Fleet } from '../workers/fleet.ts';
import type { WorkerApi } from '../workers/worker-api.ts';
import type { WorkerRequest, WorkerStream } from '../workers/worker-client.ts';
import { collectCommand } from './exec/collect-command.ts';
import { createOutputBudgets } from './exec/output-budgets.ts';
import { findSandbox } from './find.ts';
import { mergeReports } from './merge-reports.ts';
import type { TenantOperations } from './tenant-operations.ts';
import { USABLE } from './usable.ts';

export interface SandboxOperationsParts {
  readonly store: Pick<Store, 'sandboxes'>;
  readonly fleet: Fleet;
  /** Commands and file transfers. */
  readonly operations: TenantOperations;
  /** Changes of state, which last as long as the worker needs. */
  readonly calls: TenantOperations;
}

/**
 * Operations on a running sandbox, which its worker carries out. All but connections to ports throw `too_many_operations`
 * when the tenant has as many as it may, in all or on this worker.
 */
export class SandboxOperations {
  readonly #store: Pick<Store, 'sandboxes'>;
  readonly #fleet: Fleet;
  readonly #running: TenantOperations;
  readonly #calls: TenantOperations;
  readonly #output = createOutputBudgets();

  constructor({ store, fleet, operations, calls }: SandboxOperationsParts) {
    this.#store = store;
    this.#fleet = fleet;
    this.#running = operations;
    this.#calls = calls;
  }

  /**
   * Runs a command. Settles at its end with the answer, as JSON of the form `ExecResponse`, which counts as an operation
   * of the tenant until the client has it.
   */
  async exec(
    caller: Caller,
    vmId: string,
    request: ExecRequest,
    signal: AbortSignal,
  ): Promise<Readable> {
    const { tenantId } = caller;
    const { worker_id: workerId } = await this.#usable(caller, vmId, USABLE);
    const { body } = await this.#running.stream({ tenantId, workerId }, async () => ({
      body: await this.#work(workerId, signal, (worker) =>
        collectCommand(worker.exec(vmId, request, signal), this.#output.of(tenantId), signal),
      ),
      contentLength: undefined,
    }));
    return body;
  }

  /** The server-sent events of the worker. */
  async streamExec(
    caller: Caller,
    vmId: string,
    request: ExecRequest,
    signal: AbortSignal,
  ): Promise<WorkerStream> {
    const { worker_id: workerId } = await this.#usable(caller, vmId, USABLE);
    return this.#running.stream({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(workerId, signal, (worker) => worker.streamExec(vmId, request, signal)),
    );
  }

  async download(
    caller: Caller,
    vmId: string,
    path: string,
    signal: AbortSignal,
  ): Promise<WorkerStream> {
    checkPath(path);
    const { worker_id: workerId } = await this.#usable(caller, vmId, USABLE);
    return this.#running.stream({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(workerId, signal, (worker) => worker.download(vmId, path, signal)),
    );
  }

  async upload(
    caller: Caller,
    vmId: string,
    path: string,
    upload: NonNullable<WorkerRequest['upload']>,
    signal: AbortSignal,
  ): Promise<void> {
    checkPath(path);
    const { worker_id: workerId } = await this.#usable(caller, vmId, USABLE);
    const send = (worker: WorkerApi) => worker.upload(vmId, path, upload, signal);
    // Its bytes can be read once.
    const options = { signal, isWork: true, isRepeatable: false };
    return this.#running.run({ tenantId: caller.tenantId, workerId }, () =>
      notRunningIfGone(this.#fleet.call(workerId, send, options)),
    );
  }

  /** A connection to a server in a running sandbox; a paused one stays paused. The caller owns it. */
  async connectPort(
    caller: Caller,
    vmId: string,
    port: number,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const { worker_id: workerId } = await this.#usable(caller, vmId, ['running']);
    return this.#work(workerId, signal, (worker) => worker.connectPort(vmId, port, signal));
  }

  async cancel(
    caller: Caller,
    vmId: string,
    reason: CancelReason,
    signal: AbortSignal,
  ): Promise<CancelResponse> {
    const { worker_id: workerId } = await this.#usable(caller, vmId, ['running']);
    return this.#calls.run({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(workerId, signal, (worker) => worker.cancel(vmId, reason, signal)),
    );
  }

  async pause(caller: Caller, vmId: string): Promise<SandboxRow> {
    return this.#change(caller, vmId, (worker) => worker.pause(vmId));
  }

  async resume(caller: Caller, vmId: string): Promise<SandboxRow> {
    return this.#change(caller, vmId, (worker) => worker.resume(vmId));
  }

  /** Changes the state on the worker and in the ledger. Returns the new row. */
  async #change(
    caller: Caller,
    vmId: string,
    change: (worker: WorkerApi) => Promise<WorkerSandbox>,
  ): Promise<SandboxRow> {
    const row = await this.#usable(caller, vmId, USABLE);
    const { worker_id: workerId } = row;
    const report = await this.#calls.run({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(workerId, undefined, change),
    );
    const [changed] = await this.#store.sandboxes.applyReports(workerId, [report]);
    return changed ?? mergeReports([row], [report])[0] ?? row;
  }

  #work<T>(
    workerId: string,
    signal: AbortSignal | undefined,
    call: (worker: WorkerApi) => Promise<T>,
  ): Promise<T> {
    const options = { isWork: true, ...(signal === undefined ? {} : { signal }) };
    return notRunningIfGone(this.#fleet.call(workerId, call, options));
  }

  async #usable(
    caller: Caller,
    vmId: string,
    states: readonly SandboxState[],
  ): Promise<SandboxRow> {
    const row = await findSandbox(this.#store, caller, vmId);
    if (!states.includes(row.state)) throw new ServiceError('sandbox_not_running');
    return row;
  }
}

/** The ledger may still list a sandbox that its worker no longer has. To callers it has ended. */
async function notRunningIfGone<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!isServiceError(error, 'sandbox_not_found')) throw error;
    throw new ServiceError('sandbox_not_running', undefined, { cause: error });
  }
}
