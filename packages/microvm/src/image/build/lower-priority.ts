import { readdir } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';

/** Lowers the priority of every thread of a process. On Linux each thread has its own. New threads inherit it. */
export async function lowerPriority(pid: number): Promise<void> {
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    try {
      setPriority(Number(thread), constants.priority.PRIORITY_LOW);
    } catch (error) {
      // The thread has ended in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SYSTEM_ERROR') throw error;
    }
  }
}
