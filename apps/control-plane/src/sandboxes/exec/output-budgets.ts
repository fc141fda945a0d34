import { ByteBudget } from './byte-budget.ts';

const MIB = 1024 * 1024;
/** Output that this control plane holds for one tenant, and for all, until their clients have it. */
const TENANT_BYTES = 128 * MIB;
const TOTAL_BYTES = 1024 * MIB;

interface Entry {
  readonly budget: ByteBudget;
  commands: number;
}

/** The memory for the output of commands, shared fairly: no tenant can take that of another, but for the total. */
export class OutputBudgets {
  readonly #total = new ByteBudget(TOTAL_BYTES);
  readonly #tenants = new Map<string, Entry>();

  /** The budget of a tenant for one command, until `leave` is called. */
  enter(tenantId: string): { readonly budget: ByteBudget; readonly leave: () => void } {
    const entry = this.#tenants.get(tenantId) ?? {
      budget: new ByteBudget(TENANT_BYTES, this.#total),
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
