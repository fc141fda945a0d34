import {
  LIMITS,
  type ListSandboxesQuery,
  type ListSandboxesResponse,
  type SandboxRecord,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import { Slots } from '@svc/service-kit/concurrency';
import type { SandboxRow, SeenSandbox, Store, WorkerRow } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { Fleet } from '../workers/fleet.ts';
import { isUnreachable } from '../workers/reachability.ts';
import { WorkerRefusedCredential } from '../workers/worker-errors.ts';
import { findSandbox } from './find.ts';
import { mergeReports } from './merge-reports.ts';
import { toRecord } from './record.ts';
import type { TenantOperations } from './tenant-operations.ts';

const WORKERS_AT_ONCE = 16;

/** A list, and what asks for the next page if there is one. */
export interface ListedSandboxes {
  readonly answer: ListSandboxesResponse;
  readonly next: Required<ListSandboxesQuery> | undefined;
}

/** Reads the sandboxes of a tenant. */
export class SandboxReader {
  readonly #store: Pick<Store, 'sandboxes' | 'workers'>;
  readonly #fleet: Fleet;
  readonly #calls: TenantOperations;
  readonly #mostPerTenant: number;

  /** `mostPerTenant`: sandboxes that a tenant may have at a time. */
  constructor(
    store: Pick<Store, 'sandboxes' | 'workers'>,
    fleet: Fleet,
    calls: TenantOperations,
    mostPerTenant: number,
  ) {
    this.#store = store;
    this.#fleet = fleet;
    this.#calls = calls;
    this.#mostPerTenant = mostPerTenant;
  }

  /** One sandbox from the ledger, which heartbeats and events keep current. @throws ServiceError `sandbox_not_found` */
  async get(caller: Caller, vmId: string): Promise<SandboxRecord> {
    return toRecord(await findSandbox(this.#store, caller, vmId));
  }

  /**
   * Every sandbox, or a page of them: the ledger's records, updated by the workers that answer in time; `partial` when one does not.
   * @throws ServiceError `no_workers`, `too_many_operations`; `unauthorized` when a worker refuses the control plane
   */
  list(
    { tenantId }: Caller,
    query: ListSandboxesQuery,
    signal: AbortSignal,
  ): Promise<ListedSandboxes> {
    return this.#calls.run({ tenantId, workerId: undefined }, () =>
      this.#list(tenantId, query, signal),
    );
  }

  async #list(
    tenantId: string,
    { limit, after }: ListSandboxesQuery,
    signal: AbortSignal,
  ): Promise<ListedSandboxes> {
    const isPaged = limit !== undefined || after !== undefined;
    const most = limit ?? LIMITS.pageDefault;
    // One more than the page has, which shows that there is another page.
    const page = isPaged ? { limit: most + 1, after } : undefined;
    const found = await this.#store.sandboxes.list(tenantId, page);
    // A live sandbox has a worker, and a page after another goes on as that one did.
    const mayBeWithout = after === undefined && found.every(({ state }) => state === 'destroyed');
    if (mayBeWithout && !(await this.#store.workers.isAny())) throw new ServiceError('no_workers');
    const rows = isPaged ? found.slice(0, most) : found;
    const answer = await this.#current(rows, tenantId, signal);
    const last = rows.at(-1);
    const hasNext = last !== undefined && found.length > rows.length;
    return { answer, next: hasNext ? { limit: most, after: last.vm_id } : undefined };
  }

  /** What the workers that hold these sandboxes say of them. */
  async #current(
    rows: readonly SeenSandbox[],
    tenantId: string,
    signal: AbortSignal,
  ): Promise<ListSandboxesResponse> {
    const holders = await this.#holdersOf(rows);
    const holderOf = new Map(rows.map((row) => [row.vm_id, row.worker_id]));
    const limit = new Slots(WORKERS_AT_ONCE);
    const answers = await Promise.all(
      holders.map((worker) => limit.run(() => this.#ask(worker, tenantId, signal))),
    );
    // A worker reports only its own sandboxes.
    const reports = answers.flatMap((answer = [], index) =>
      answer.filter((report) => holderOf.get(report.vm_id) === holders[index]?.worker_id),
    );
    const sandboxes = mergeReports(rows, reports).map(toRecord);
    return answers.includes(undefined) ? { sandboxes, partial: true } : sandboxes;
  }

  async #holdersOf(rows: readonly SandboxRow[]): Promise<WorkerRow[]> {
    const live = rows.filter(({ state }) => state !== 'destroyed');
    const ids = new Set(live.map((row) => row.worker_id));
    const found = await Promise.all([...ids].map((id) => this.#store.workers.find(id)));
    return found.filter((worker) => worker !== undefined);
  }

  /** Undefined when the worker does not respond, or its response violates the contract. */
  async #ask(
    worker: WorkerRow,
    tenantId: string,
    signal: AbortSignal,
  ): Promise<WorkerSandbox[] | undefined> {
    if (isUnreachable(worker)) return undefined;
    try {
      return await this.#fleet.at(worker).list(tenantId, this.#mostPerTenant, signal);
    } catch (error) {
      if (error instanceof WorkerRefusedCredential) {
        throw new ServiceError('unauthorized', undefined, { cause: error });
      }
      if (error instanceof ServiceError) return undefined;
      throw error;
    }
  }
}
