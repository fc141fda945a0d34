import { ByteBudget } from './byte-budget.ts';

const MIB = 1024 * 1024;
/** Output that this control plane holds for one tenant until its clients have it. */
const TENANT_BYTES = 128 * MIB;
/** The part of it that no other tenant can take. */
const OWN_BYTES = MIB;
/** What all tenants together hold in addition to that. */
const SHARED_BYTES = 1024 * MIB;

interface Entry {
  readonly budget: ByteBudget;
  commands: number;
}

/** The memory for the output of commands. However many tenants hold what they can, others have their own part. */
export class OutputBudgets {
  readonly #shared = { free: SHARED_BYTES };
  readonly #tenants = new Map<string, Entry>();

  /** The budget of a tenant for one command, until `leave` is called. */
  enter(tenantId: string): { readonly budget: ByteBudget; readonly leave: () => void } {
    const entry = this.#tenants.get(tenantId) ?? {
      budget: new ByteBudget(TENANT_BYTES, OWN_BYTES, this.#shared),
      commands: 0,
    };
    this.#tenants.set(tenantId, entry);
    entry.commands += 1;
    return {
      budget: entry.budget,
      leave: () => {
        entry.commands -= 1;
        if (entry.commands === 0) this.#tenants.delete(tenantId);
      },
    };
  }
}
