import { setImmediate as turn } from 'node:timers/promises';
import { FRAME_MS, FrameQueue } from '../frame-queue.ts';
import { LIMITS } from '../limits.ts';

type Callback = (...values: readonly unknown[]) => unknown;

interface Timer {
  readonly callback: Callback;
  readonly values: readonly unknown[];
  /** Milliseconds between two calls. Undefined: one call. */
  readonly every: number | undefined;
  due: number;
}

/**
 * The time of a page. It stands still while the page computes or loads something, and else jumps to the next timer or
 * animation frame, so that a page is drawn as fast as the machine can and looks the same each time.
 */
export class PageClock {
  readonly #timers = new Map<number, Timer>();
  readonly #frames = new FrameQueue();
  #now = 0;
  #last = 0;
  #calls = 0;

  /** The functions of a page's `window` that depend on its time. */
  readonly functions = {
    setTimeout: (callback: unknown, delay?: unknown, ...values: readonly unknown[]) =>
      this.#add(callback, delay, values, false),
    setInterval: (callback: unknown, delay?: unknown, ...values: readonly unknown[]) =>
      this.#add(callback, delay, values, true),
    clearTimeout: (handle: number) => this.#clear(handle),
    clearInterval: (handle: number) => this.#clear(handle),
    requestAnimationFrame: this.#frames.request,
    cancelAnimationFrame: this.#frames.cancel,
  };

  /** Milliseconds since the start of the page. */
  get now(): number {
    return this.#now;
  }

  /**
   * Runs timers and frames in the order of their times, at most `frames` frames and the timers of `LIMITS.timers`, until
   * nothing is left. Calls `idle` before each step: it resolves when nothing is being loaded.
   */
  async run(frames: number, idle: () => Promise<void>): Promise<void> {
    for (;;) {
      await turn();
      await idle();
      if (!this.#step(frames)) return;
    }
  }

  /** Runs what comes next. False: there is nothing. */
  #step(frames: number): boolean {
    const next = this.#nextTimer();
    const frameAt = (this.#frames.frames + 1) * FRAME_MS;
    const frame = this.#frames.pending && this.#frames.frames < frames;
    if (frame && (next === undefined || frameAt <= next[1].due)) {
      this.#now = Math.max(this.#now, frameAt);
      this.#frames.draw(this.#now);
      return true;
    }
    if (next === undefined) return false;
    this.#fire(...next);
    return true;
  }

  #nextTimer(): [number, Timer] | undefined {
    if (this.#calls >= LIMITS.timerCalls) return undefined;
    let next: [number, Timer] | undefined;
    for (const entry of this.#timers) {
      if (next === undefined || entry[1].due < next[1].due) next = entry;
    }
    return next === undefined || next[1].due > LIMITS.timers ? undefined : next;
  }

  #fire(handle: number, timer: Timer): void {
    this.#calls += 1;
    this.#now = Math.max(this.#now, timer.due);
    if (timer.every === undefined) this.#timers.delete(handle);
    else timer.due = this.#now + timer.every;
    timer.callback(...timer.values);
  }

  #add(callback: unknown, delay: unknown, values: readonly unknown[], repeat: boolean): number {
    if (typeof callback !== 'function') {
      throw new TypeError('setTimeout and setInterval take a function');
    }
    // As in browsers, at least a millisecond, so that a timer that sets itself again makes the time pass.
    const wait = Math.max(1, Number(delay) || 0);
    this.#last += 1;
    this.#timers.set(this.#last, {
      callback: callback as Callback,
      values,
      every: repeat ? wait : undefined,
      due: this.#now + wait,
    });
    return this.#last;
  }

  #clear(handle: number): void {
    this.#timers.delete(handle);
  }
}
