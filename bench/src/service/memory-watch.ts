import { setTimeout as sleep } from 'node:timers/promises';
import { residentMib } from '@svc/service-driver';

const SAMPLE_MS = 25;

/** Samples the resident memory of a process during some work and returns the maximum, in MiB. */
export async function peakResidentMib(pid: number, work: () => Promise<unknown>): Promise<number> {
  const finished = new AbortController();
  let peak = await residentMib(pid);
  const watch = (async () => {
    while (!finished.signal.aborted) {
      peak = Math.max(peak, await residentMib(pid));
      await sleep(SAMPLE_MS);
    }
  })();
  try {
    await work();
  } finally {
    finished.abort();
    await watch;
  }
  return peak;
}
