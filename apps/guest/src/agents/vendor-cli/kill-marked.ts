import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { MARK } from './environment.ts';

/** Several rounds, since a process may start another during the scan, and needs time to die. */
const ROUNDS = 100;
const PAUSE_MS = 20;

/**
 * Kills every process with this mark in its environment: the background processes of a CLI's commands. Settles when
 * they have ended, or after a few seconds.
 */
export async function killMarked(mark: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const pids = await marked(`${MARK}=${mark}`);
    if (pids.length === 0) return;
    for (const pid of pids) kill(pid);
    await sleep(PAUSE_MS);
  }
}

async function marked(entry: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map((pid) => carries(pid, entry)));
  return pids.filter((pid, index) => found[index] && pid !== process.pid);
}

async function carries(pid: number, entry: string): Promise<boolean> {
  // Processes of other users cannot be read, and are not the agent's.
  const environ = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
  return environ.split('\0').includes(entry);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended, or its id now belongs to a process of another user.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
