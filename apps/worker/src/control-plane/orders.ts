import type { DestroyOrder } from '@svc/contract';
import { Slots } from '@svc/service-kit/concurrency';
import type { SandboxRegistry } from '../sandbox/registry.ts';

const CONCURRENCY = 8;

/** Carries out the control plane's orders to destroy, in the background. */
export class DestroyOrders {
  readonly #registry: SandboxRegistry;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #limit = new Slots(CONCURRENCY);

  constructor(registry: SandboxRegistry, onFault: (error: unknown, what: string) => void) {
    this.#registry = registry;
    this.#onFault = onFault;
  }

  /** An order for an older generation than this worker holds is not about the sandbox that lives here. */
  carryOut(orders: readonly DestroyOrder[]): void {
    for (const { vm_id, generation, reason } of orders) {
      const sandbox = this.#registry.find(vm_id);
      // Orders are repeated with every heartbeat until they are done.
      if (sandbox === undefined || !sandbox.isLive || sandbox.isEnding) continue;
      if (sandbox.assignment.generation > generation) continue;
      this.#limit
        .run(() => sandbox.end(reason))
        .catch((error) => this.#onFault(error, `destroy ${vm_id} as ordered`));
    }
  }
}
