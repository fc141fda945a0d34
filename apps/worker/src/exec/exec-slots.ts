import { LIMITS, ServiceError } from '@svc/contract';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { ByteBudget } from './byte-budget.ts';

const MIB = 1024 * 1024;
/** Bounds of the output held for collected commands: per sandbox, and for the whole worker. */
const SANDBOX_OUTPUT_BYTES = 64 * MIB;
const WORKER_OUTPUT_BYTES = 1024 * MIB;

/** The resources shared by a sandbox's commands. */
interface Usage {
  running: number;
  readonly budget: ByteBudget;
}

/** The right to run one command, and the budget for its output. */
export interface ExecSlot {
  readonly budget: ByteBudget;
  /** Returns the slot. Idempotent. */
  leave(): void;
}

/** Bounds the concurrent commands of a sandbox, and the memory of their output. */
export class ExecSlots {
  readonly #usage = new WeakMap<Sandbox, Usage>();
  readonly #total: ByteBudget;
  #running = 0;

  constructor(totalBytes = WORKER_OUTPUT_BYTES) {
    this.#total = new ByteBudget(totalBytes);
  }

  /** Number of running commands on the whole worker. */
  get running(): number {
    return this.#running;
  }

  /** Takes a slot of the sandbox until `leave` is called. @throws ServiceError `too_many_execs` */
  enter(sandbox: Sandbox): ExecSlot {
    const usage = this.#usageOf(sandbox);
    if (usage.running >= LIMITS.execsPerSandbox) {
      throw new ServiceError('too_many_execs', undefined, { headers: { 'retry-after': '1' } });
    }
    usage.running += 1;
    this.#running += 1;
    let left = false;
    const leave = () => {
      if (left) return;
      left = true;
      usage.running -= 1;
      this.#running -= 1;
    };
    return { budget: usage.budget, leave };
  }

  #usageOf(sandbox: Sandbox): Usage {
    const known = this.#usage.get(sandbox);
    if (known !== undefined) return known;
    const usage = { running: 0, budget: new ByteBudget(SANDBOX_OUTPUT_BYTES, this.#total) };
    this.#usage.set(sandbox, usage);
    return usage;
  }
}
