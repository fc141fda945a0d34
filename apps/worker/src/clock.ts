/** The two clocks of the worker, in milliseconds. Injected so that tests control the time. */
export interface Clock {
  /** Wall time since the epoch: for records and for times that must survive a restart. */
  wall(): number;
  /** Time without steps: for every deadline inside this process. */
  monotonic(): number;
}

/** The clocks of this machine. */
export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
};

/** A wall time in the format of records. */
export function timestamp(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
