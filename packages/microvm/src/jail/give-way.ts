import { readdir } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';

/** Lowers the priority of every thread of a process; on Linux each has its own. Threads that start later inherit it. */
export async function giveWay(pid: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch (error) {
      // A thread that has ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SYSTEM_ERROR') throw error;
    }
  }
}
