import type { Clock } from '../src/clock.ts';

/** A clock that only tests advance. Milliseconds. */
export class ManualClock implements Clock {
  #now = 0;
  #base: number;

  constructor(wallMs = Date.parse('2026-01-01T00:00:00.000Z')) {
    this.#base = wallMs;
  }

  wall(): number {
    return this.#base + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  /** Steps the wall clock only, as a time server does. */
  stepWall(ms: number): void {
    this.#base += ms;
  }
}
