import { sleep } from './sleep.ts';

/** A wait that can be cut short: for loops that poll seldom but react at once. */
export class Wakeable {
  #controller = new AbortController();

  /** Ends the wait under way, or the next one if none is. */
  wake(): void {
    this.#controller.abort();
  }

  /** Waits for `wake`, `signal` or `ms` milliseconds, whichever comes first. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, AbortSignal.any([this.#controller.signal, signal]));
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
  }
}
