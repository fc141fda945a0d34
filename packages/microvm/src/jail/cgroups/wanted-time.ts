import { readdir, readFile } from 'node:fs/promises';

const NS_PER_MS = 1_000_000;
/** What vanishes while it is read has ended. */
const ENDED: readonly unknown[] = ['ENOENT', 'ESRCH'];

/**
 * The time of a processor that the threads of a process have wanted so far: what they have had, and what they have waited for
 * it. In milliseconds; 0 for a process that has ended. https://docs.kernel.org/scheduler/sched-stats.html
 */
export async function wantedMs(pid: string): Promise<number> {
  try {
    const threads = await readdir(`/proc/${pid}/task`);
    const times = await Promise.all(threads.map((thread) => wantedBy(pid, thread)));
    return times.reduce((sum, time) => sum + time, 0);
  } catch (error) {
    if (ENDED.includes((error as NodeJS.ErrnoException).code)) return 0;
    throw error;
  }
}

async function wantedBy(pid: string, thread: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8');
  const [had = 0, waited = 0] = text.split(' ').map(Number);
  return (had + waited) / NS_PER_MS;
}
