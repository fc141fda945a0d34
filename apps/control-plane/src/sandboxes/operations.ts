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
import type { CallOptions, Fleet } from '../workers/fleet.ts';
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

/** A sandbox that can be used, as it was when its row was read. */
interface UsableSandbox {
  readonly row: SandboxRow;
  readonly workerId: string;
  /** Throws once it can be used no more. */
  readonly check: () => Promise<unknown>;
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
    const sandbox = await this.#usable(caller, vmId, USABLE);
    const { workerId } = sandbox;
    const { body } = await this.#running.stream({ tenantId, workerId }, async () => ({
      body: await this.#work(sandbox, signal, (worker) =>
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
    const sandbox = await this.#usable(caller, vmId, USABLE);
    const { workerId } = sandbox;
    return this.#running.stream({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(sandbox, signal, (worker) => worker.streamExec(vmId, request, signal)),
    );
  }

  async download(
    caller: Caller,
    vmId: string,
    path: string,
    signal: AbortSignal,
  ): Promise<WorkerStream> {
    checkPath(path);
    const sandbox = await this.#usable(caller, vmId, USABLE);
    const { workerId } = sandbox;
    return this.#running.stream({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(sandbox, signal, (worker) => worker.download(vmId, path, signal)),
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
    const sandbox = await this.#usable(caller, vmId, USABLE);
    const { workerId } = sandbox;
    const send = (worker: WorkerApi) => worker.upload(vmId, path, upload, signal);
    return this.#running.run({ tenantId: caller.tenantId, workerId }, () =>
      // Its bytes can be read once.
      this.#work(sandbox, signal, send, { isRepeatable: false }),
    );
  }

  /** A connection to a server in a running sandbox; a paused one stays paused. The caller owns it. */
  async connectPort(
    caller: Caller,
    vmId: string,
    port: number,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const sandbox = await this.#usable(caller, vmId, ['running']);
    return this.#work(sandbox, signal, (worker) => worker.connectPort(vmId, port, signal));
  }

  async cancel(
    caller: Caller,
    vmId: string,
    reason: CancelReason,
    signal: AbortSignal,
  ): Promise<CancelResponse> {
    const sandbox = await this.#usable(caller, vmId, ['running']);
    const { workerId } = sandbox;
    return this.#calls.run({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(sandbox, signal, (worker) => worker.cancel(vmId, reason, signal)),
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
    const sandbox = await this.#usable(caller, vmId, USABLE);
    const { row, workerId } = sandbox;
    const report = await this.#calls.run({ tenantId: caller.tenantId, workerId }, () =>
      this.#work(sandbox, undefined, change),
    );
    const [changed] = await this.#store.sandboxes.applyReports(workerId, [report]);
    return changed ?? mergeReports([row], [report])[0] ?? row;
  }

  /** Makes a call to the worker of a sandbox, which waits for a worker that restarts unless the sandbox has ended. */
  #work<T>(
    { workerId, check }: UsableSandbox,
    signal: AbortSignal | undefined,
    call: (worker: WorkerApi) => Promise<T>,
    options: Pick<CallOptions, 'isRepeatable'> = {},
  ): Promise<T> {
    const cancellable = signal === undefined ? {} : { signal };
    return notRunningIfGone(
      this.#fleet.call(workerId, call, { ...options, ...cancellable, isWork: true, check }),
    );
  }

  async #usable(
    caller: Caller,
    vmId: string,
    states: readonly SandboxState[],
  ): Promise<UsableSandbox> {
    const check = async () => {
      const row = await findSandbox(this.#store, caller, vmId);
      if (!states.includes(row.state)) throw new ServiceError('sandbox_not_running');
      return row;
    };
    const row = await check();
    return { row, workerId: row.worker_id, check };
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
