/** The two clocks of the worker, in milliseconds. Injected so that tests control the time. */
export interface Clock {
  /** Wall time since the epoch: for records and for times that must survive a restart. */
  wall(): number;
  /** Time without steps, which all processes of this machine share until it boots: for deadlines and durations. */
  monotonic(): number;
}

/** The clocks of this machine. */
export const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
};

/** A wall time in the format of records. */
export function timestamp(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
