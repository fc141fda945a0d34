import type { Clock } from '../clock.ts';

/** Counts the activities that keep a sandbox from being idle: connections, running commands and agents, transfers. */
export class Activity {
  readonly #clock: Clock;
  #active = 0;
  #idleSince: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#idleSince = clock.monotonic();
  }

  /** Marks the start of an activity; the returned function marks its end and may be called twice. */
  begin(): () => void {
    this.#active += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#active -= 1;
      this.touch();
    };
  }

  /** Restarts the idle timeout. */
  touch(): void {
    this.#idleSince = this.#clock.monotonic();
  }

  /** Monotonic milliseconds at which the last activity ended; undefined while something is active. */
  get idleSince(): number | undefined {
    return this.#active > 0 ? undefined : this.#idleSince;
  }
}
