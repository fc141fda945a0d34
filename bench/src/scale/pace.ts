import { setTimeout as sleep } from 'node:timers/promises';

/** Between two looks at what is due. */
const STEP_MS = 5;

/** Calls of one kind. */
export interface Pace {
  readonly perSecond: number;
  /** Of these, how many may be under way at once. Those that are due meanwhile are left out, and counted as missing. */
  readonly atOnce: number;
  call(index: number): Promise<void>;
}

/** What became of them. */
export interface Paced {
  /** How long each took that succeeded, in ms. */
  readonly took: number[];
  failed: number;
  /** Due while too many were under way. */
  leftOut: number;
  readonly failures: Set<string>;
}

/** For how long calls are made. */
export interface Duration {
  readonly seconds: number;
  /** Ends it early. */
  readonly signal: AbortSignal;
}

/** Makes calls at a steady rate, whatever time they take, and waits for their ends. */
export async function keepPace(
  { perSecond, atOnce, call }: Pace,
  { seconds, signal }: Duration,
): Promise<Paced> {
  const paced: Paced = { took: [], failed: 0, leftOut: 0, failures: new Set() };
  const running = new Set<Promise<void>>();
  const begun = performance.now();
  const start = (index: number): void => {
    const callBegun = performance.now();
    const one = call(index)
      .then(
        () => void paced.took.push(performance.now() - callBegun),
        (error: unknown) => {
          paced.failed += 1;
          paced.failures.add(String(error));
        },
      )
      .finally(() => running.delete(one));
    running.add(one);
  };
  let due = 0;
  for (;;) {
    const elapsed = performance.now() - begun;
    if (elapsed >= seconds * 1000 || signal.aborted) break;
    for (; due < (elapsed / 1000) * perSecond; due += 1) {
      if (running.size >= atOnce) paced.leftOut += 1;
      else start(due);
    }
    await sleep(STEP_MS);
  }
  await Promise.all(running);
  return paced;
}
