/** The two clocks the worker reads, injected so that tests own time. Both in milliseconds. */
export interface Clock {
  /** Wall time since the epoch: for records and for what must survive a restart. */
  wall(): number;
  /** Time that never steps: for every deadline inside this process. */
  monotonic(): number;
}

/** The clocks of this machine. */
export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};

/** A wall time as records carry it. */
export function timestamp(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
