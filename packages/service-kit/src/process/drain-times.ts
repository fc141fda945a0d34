/** How long a server that is about to close serves its callers. Both times are in milliseconds. */
export interface DrainTimes {
  /** New work is still accepted for this long while the server says that it is not ready, so that load balancers leave it. */
  readonly noticeMs: number;
  /** Afterwards, work in progress has this long to end. */
  readonly workMs: number;
}

/** Refuses new work at once and waits for none. */
export const NO_DRAIN: DrainTimes = { noticeMs: 0, workMs: 0 };
