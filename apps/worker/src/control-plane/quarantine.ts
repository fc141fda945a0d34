import type { QuarantineOrder } from '@svc/contract';
import type { WorkerLogger } from '../logger.ts';

/** A sandbox that can be kept in quarantine. */
interface QuarantinableSandbox {
  readonly id: string;
  readonly assignment: { readonly generation: number };
  readonly isQuarantined: boolean;
  /** Takes effect at once; settles when a restart would find it. */
  setQuarantined(isQuarantined: boolean): Promise<void>;
}

export interface QuarantineOptions {
  readonly registry: { live(): QuarantinableSandbox[] };
  readonly logger: Pick<WorkerLogger, 'warn' | 'info'>;
  readonly onFault: (error: unknown, action: string) => void;
}

/**
 * The sandboxes that a restored ledger does not know. Their VMs stand still, and nothing on this worker ends them by
 * itself, until an operator has decided.
 */
export class Quarantine {
  readonly #options: QuarantineOptions;

  constructor(options: QuarantineOptions) {
    this.#options = options;
  }

  /** Puts exactly these sandboxes into quarantine, and takes all others out of it. */
  apply(orders: readonly QuarantineOrder[]): void {
    const { registry, logger } = this.#options;
    const generations = new Map(orders.map(({ vm_id, generation }) => [vm_id, generation]));
    for (const sandbox of registry.live()) {
      const isNamed = generations.get(sandbox.id) === sandbox.assignment.generation;
      if (isNamed === sandbox.isQuarantined) continue;
      if (isNamed) logger.warn({ vm_id: sandbox.id }, 'the ledger has lost a sandbox; it is held');
      else logger.info({ vm_id: sandbox.id }, 'the ledger knows the sandbox again');
      this.#set(sandbox, isNamed);
    }
  }

  #set(sandbox: QuarantinableSandbox, isQuarantined: boolean): void {
    sandbox
      .setQuarantined(isQuarantined)
      .catch((error) => this.#options.onFault(error, `record the quarantine of ${sandbox.id}`));
  }
}
