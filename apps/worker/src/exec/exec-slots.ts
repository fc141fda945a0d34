import { LIMITS, ServiceError } from '@svc/contract';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** Bounds the concurrent commands of a sandbox. */
export class ExecSlots {
  readonly #runningIn = new WeakMap<Sandbox, number>();
  #running = 0;

  /** Number of running commands on the whole worker. */
  get running(): number {
    return this.#running;
  }

  /**
   * Takes a slot of the sandbox. Returns the function that gives it back, which may be called again.
   * @throws ServiceError `too_many_execs`
   */
  enter(sandbox: Sandbox): () => void {
    const running = this.#runningIn.get(sandbox) ?? 0;
    if (running >= LIMITS.execsPerSandbox) {
      throw new ServiceError('too_many_execs');
    }
    this.#count(sandbox, 1);
    let isHeld = true;
    return () => {
      if (isHeld) this.#count(sandbox, -1);
      isHeld = false;
    };
  }

  #count(sandbox: Sandbox, change: number): void {
    this.#runningIn.set(sandbox, (this.#runningIn.get(sandbox) ?? 0) + change);
    this.#running += change;
  }
}
