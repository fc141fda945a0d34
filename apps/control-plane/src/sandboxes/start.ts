import {
  type CreateSandboxRequest,
  isServiceError,
  type PlaceSandboxRequest,
  placementFor,
  type SandboxSize,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import type {
  IdempotencyHold,
  PlacedRow,
  Placement,
  PlacementRefusal,
  PlacementRequest,
  Store,
} from '@svc/store';
import type { AgentPlacement } from '../agents/agent-placement.ts';
import type { AgentVault } from '../agents/agent-vault.ts';
import { environmentOf } from '../agents/one-shot.ts';
import type { CreditGate } from '../billing/credit-gate.ts';
import type { Fleet } from '../workers/fleet.ts';

const REFUSALS = {
  tenant_limit: 'sandbox_limit_reached',
  no_workers: 'no_workers',
  no_capacity: 'no_capacity',
  template_not_available: 'template_not_available',
  key_taken_over: 'idempotency_in_progress',
} as const satisfies Record<PlacementRefusal | 'key_taken_over', string>;

/** A sandbox to create. */
export interface NewSandbox {
  readonly vmId: string;
  readonly tenantId: string;
  readonly request: CreateSandboxRequest;
  readonly agent: AgentPlacement | undefined;
  /** The session that the sandbox belongs to, and its generation. */
  readonly session?: PlacementRequest['session'];
  /** The idempotency key of the request. */
  readonly hold?: IdempotencyHold | undefined;
}

interface SandboxStarterParts {
  readonly store: Pick<Store, 'sandboxes'>;
  readonly fleet: Fleet;
  readonly vault: AgentVault;
  readonly credit: CreditGate;
}

/** Places new sandboxes on workers and starts them there. */
export class SandboxStarter {
  readonly #store: Pick<Store, 'sandboxes'>;
  readonly #fleet: Fleet;
  readonly #vault: AgentVault;
  readonly #credit: CreditGate;

  constructor({ store, fleet, vault, credit }: SandboxStarterParts) {
    this.#store = store;
    this.#fleet = fleet;
    this.#vault = vault;
    this.#credit = credit;
  }

  /**
   * Reserves capacity, starts the sandbox and returns it running. Tries the next best worker when one is full
   * after all, cannot be reached or answers nonsense. A failure leaves nothing behind, and neither does a signal that
   * aborts before the return.
   * @throws ServiceError `credits_exhausted`, `sandbox_limit_reached`, `no_workers`, `no_capacity`,
   *   `template_not_available`, `sandbox_deleted`, `idempotency_in_progress` when another request has taken over the
   *   key of this one, and the errors of the worker
   */
  async start(sandbox: NewSandbox, signal: AbortSignal): Promise<WorkerSandbox> {
    await this.#credit.check(sandbox.tenantId);
    const passedOver: string[] = [];
    let row = placedOrThrow(await this.#store.sandboxes.reserve(placementRequest(sandbox)));
    for (;;) {
      try {
        return await this.#startOn(row, sandbox, signal);
      } catch (error) {
        if (!mayFitElsewhere(error) || signal.aborted)
          return await this.#giveUp(row, sandbox, error);
        passedOver.push(row.worker_id);
        const next = await this.#placeAgain(row, sandbox, passedOver);
        if (next.placed === undefined)
          return await this.#giveUp(row, sandbox, refusalAfter(next.refusal, error));
        row = next.placed;
      }
    }
  }

  async #placeAgain(
    row: PlacedRow,
    sandbox: NewSandbox,
    passedOver: readonly string[],
  ): Promise<Placement<PlacementRefusal | 'superseded'>> {
    try {
      return await this.#store.sandboxes.placeAgain(row, passedOver);
    } catch (error) {
      return await this.#giveUp(row, sandbox, error);
    }
  }

  async #startOn(row: PlacedRow, sandbox: NewSandbox, signal: AbortSignal): Promise<WorkerSandbox> {
    const worker = this.#fleet.at(row);
    // The worker fetches the secrets as soon as it starts the agent.
    if (sandbox.agent !== undefined) await this.#vault.keep(row.vm_id, sandbox.agent.secrets);
    const started = await worker.create(startRequest(row, sandbox), signal);
    const changed = await this.#store.sandboxes.applyReports(row.worker_id, [started]);
    if (changed.length === 0 && !(await this.#isLive(row))) {
      throw new ServiceError('sandbox_deleted');
    }
    // Nobody would ever learn of the sandbox.
    signal.throwIfAborted();
    return started;
  }

  /** An event of the worker may have updated the ledger first. */
  async #isLive(row: PlacedRow): Promise<boolean> {
    const current = await this.#store.sandboxes.find(row.tenant_id, row.vm_id);
    return current?.state === 'running' || current?.state === 'paused';
  }

  /**
   * Rolls back a failed creation. The row is removed, unless the VM did not boot or the sandbox was deleted
   * in the meantime: then it stays on record. If the worker still holds a VM, the next heartbeat has it destroyed.
   *
   * A sandbox that has started after all is kept if the request has an idempotency key, because a request that has taken
   * the key over may have answered with it.
   */
  async #giveUp(row: PlacedRow, { hold }: NewSandbox, error: unknown): Promise<never> {
    const { vm_id: vmId, generation } = row;
    const reason = isServiceError(error, 'boot_failed') ? 'boot_failed' : 'deleted';
    const { sandboxes } = this.#store;
    const forgotten =
      reason === 'boot_failed' ? undefined : await sandboxes.forget(vmId, generation);
    if (forgotten !== undefined) throw error;
    const unstarted = hold !== undefined;
    // The caller undoes the start of the session, which is nobody's wish to end it.
    const keepsSession = reason === 'deleted';
    const ended = await sandboxes.end({ vmId, generation, reason, unstarted, keepsSession });
    if (unstarted && ended === undefined && (await this.#isLive(row))) throw error;
    const worker = await this.#fleet.worker(row.worker_id);
    await worker.destroy(vmId, reason).catch(() => undefined);
    const deleted = ended !== undefined && ended.delete_requested_at !== null;
    if (!deleted && !isServiceError(error, 'sandbox_not_running')) throw error;
    throw new ServiceError('sandbox_deleted', undefined, { cause: error });
  }
}

function placementRequest(sandbox: NewSandbox): PlacementRequest {
  const { vmId, tenantId, request, agent, session, hold } = sandbox;
  return {
    vmId,
    tenantId,
    placement: placementFor(request, agent?.placed),
    metadata: request.metadata ?? {},
    // The parsed form is the one that was checked.
    persistenceUrl:
      request.persistence_url === undefined ? undefined : new URL(request.persistence_url).href,
    session,
    hold,
  };
}

function startRequest(row: PlacedRow, { request, agent }: NewSandbox): PlaceSandboxRequest {
  return {
    vm_id: row.vm_id,
    generation: row.generation,
    tenant_id: row.tenant_id,
    created_at: row.created_at.toISOString(),
    placement: { ...row.placement, size: { ...row.placement.size, ...reservedSize(row) } },
    env_vars: environmentOf(request),
    ...(agent === undefined ? {} : { agent_input: agent.input }),
  };
}

/** The size that the ledger counts for the sandbox, with the template's defaults where the request names none. */
function reservedSize({ vcpu, memory_mib, disk_mib }: PlacedRow): SandboxSize {
  return {
    ...(vcpu === null ? {} : { vcpu }),
    memory_mib,
    ...(disk_mib === null ? {} : { disk_mib }),
  };
}

function placedOrThrow(placement: Placement<keyof typeof REFUSALS>): PlacedRow {
  if (placement.placed !== undefined) return placement.placed;
  throw new ServiceError(REFUSALS[placement.refusal]);
}

function mayFitElsewhere(error: unknown): boolean {
  return (
    isServiceError(error, 'no_capacity') ||
    isServiceError(error, 'worker_unreachable') ||
    isServiceError(error, 'worker_bad_response') ||
    isServiceError(error, 'unknown_template') ||
    isServiceError(error, 'agent_version_unavailable')
  );
}

/** The error for the caller when no further worker can be tried. */
function refusalAfter(refusal: PlacementRefusal | 'superseded', last: unknown): unknown {
  if (refusal === 'superseded') return new ServiceError('sandbox_deleted');
  if (isServiceError(last, 'worker_unreachable')) {
    return new ServiceError('no_workers', undefined, { cause: last });
  }
  return isServiceError(last, 'unknown_template')
    ? new ServiceError('template_not_available', undefined, { cause: last })
    : last;
}
