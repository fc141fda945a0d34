import { type DestroyOrder, END_REASONS, type EndReason, knownOr } from '@svc/contract';
import { Slots } from '@svc/service-kit/concurrency';

const CONCURRENCY = 8;

/** A sandbox that can be destroyed. */
interface DestroyableSandbox {
  readonly isLive: boolean;
  readonly isEnding: boolean;
  readonly assignment: { readonly generation: number };
  readonly power: { forbidRelease(): void };
  end(reason: EndReason): Promise<unknown>;
}

interface SandboxLookup {
  find(vmId: string): DestroyableSandbox | undefined;
}

/** Carries out the control plane's orders to destroy sandboxes, in the background. */
export class DestroyOrders {
  readonly #sandboxes: SandboxLookup;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #limit = new Slots(CONCURRENCY);

  constructor(sandboxes: SandboxLookup, onFault: (error: unknown, what: string) => void) {
    this.#sandboxes = sandboxes;
    this.#onFault = onFault;
  }

  /**
   * Ignores orders for an older generation: they are not about the sandbox on this worker. A VM that is held will not run
   * again, however long its end waits for its turn.
   */
  carryOut(orders: readonly DestroyOrder[]): void {
    for (const { vm_id, generation, reason } of orders) {
      const sandbox = this.#sandboxes.find(vm_id);
      // The control plane repeats orders with every complete report until they are carried out.
      if (sandbox === undefined || !sandbox.isLive || sandbox.isEnding) continue;
      if (sandbox.assignment.generation > generation) continue;
      sandbox.power.forbidRelease();
      this.#limit
        .run(() => sandbox.end(knownOr(END_REASONS, reason, 'deleted')))
        .catch((error) => this.#onFault(error, `destroy ${vm_id} as ordered`));
    }
  }
}
