import { sleep } from './sleep.ts';

/** Given as a reason, because the default one costs a stack trace, even when the signal has aborted already. */
const WOKEN = Symbol('woken');

/** A wait that can be interrupted, for loops that poll rarely but must react immediately. */
export class Wakeable {
  #controller = new AbortController();

  /** Ends the current wait, or the next one if there is none. */
  wake(): void {
    this.#controller.abort(WOKEN);
  }

  /** Waits for `wake`, `signal` or `ms` milliseconds, whichever comes first. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, AbortSignal.any([this.#controller.signal, signal]));
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
  }
}
