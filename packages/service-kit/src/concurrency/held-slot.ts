import { settledWithin } from './abort.ts';

/** How long a task may keep a slot that is wanted, between two steps or while it waits, in ms. */
const PATIENCE_MS = 2_000;

interface HeldSlotOptions {
  /** Whether tasks of other keys wait for a slot. */
  readonly isWanted: () => boolean;
  readonly give: () => void;
  /** Settles when the task has a slot again. Rejects when the task is cancelled. */
  readonly takeBack: () => Promise<void>;
  readonly end: () => void;
}

/** A slot that a task has, or has lent. */
export class HeldSlot {
  readonly #options: HeldSlotOptions;
  #isHeld = true;
  #patienceMs = PATIENCE_MS;
  #heldSince = performance.now();

  constructor(options: HeldSlotOptions) {
    this.#options = options;
  }

  /**
   * The items of a source. If the task has waited for items and events for two seconds in all, and tasks of other keys wait
   * for a slot, they get this one until the next item is there and the task's turn has come again. Until then the task is to
   * need as little as one that is queued.
   */
  async *read<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
    const items = source[Symbol.asyncIterator]();
    try {
      for (;;) {
        const { value, done } = await this.during(items.next());
        if (done === true) return;
        yield value;
      }
    } finally {
      await items.return?.();
    }
  }

  /** The result of an event, for which the task waits as for an item of {@link read}. */
  async during<T>(event: Promise<T>): Promise<T> {
    await this.#lendDuring(event);
    return event;
  }

  /**
   * Between two steps, when the task needs little: if it has had the slot for two seconds, and tasks of other keys wait for
   * one, they get this one until the task's turn has come again.
   */
  async share(): Promise<void> {
    if (performance.now() - this.#heldSince < PATIENCE_MS || !this.#options.isWanted()) return;
    await this.#lendUntil(Promise.resolve());
  }

  /** Gives the slot back, if the task has it. To be called once, when the task has ended. */
  end(): void {
    if (this.#isHeld) this.#options.give();
    this.#options.end();
  }

  /** Settles when the event has, and the task has its slot. */
  async #lendDuring(event: Promise<unknown>): Promise<void> {
    while (!(await this.#isPatientUntil(event))) {
      this.#patienceMs = PATIENCE_MS;
      if (!this.#options.isWanted()) continue;
      await this.#lendUntil(event);
      return;
    }
  }

  async #lendUntil(event: Promise<unknown>): Promise<void> {
    this.#isHeld = false;
    this.#options.give();
    await Promise.allSettled([event]);
    await this.#options.takeBack();
    this.#isHeld = true;
    this.#heldSince = performance.now();
  }

  async #isPatientUntil(event: Promise<unknown>): Promise<boolean> {
    const begun = performance.now();
    const hasSettled = await settledWithin(event, Math.max(0, this.#patienceMs));
    this.#patienceMs -= performance.now() - begun;
    return hasSettled;
  }
}
