import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { processIds, signalProcess } from '@svc/service-kit/process';

const ATTEMPTS = 200;
const PAUSE_MS = 20;

/** Kills processes of this VM that have no record, for example after a crash between start and record. */
export async function killStray(id: string): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const pids = await processesOf(id);
    if (pids.length === 0) return;
    for (const pid of pids) signalProcess(pid, 'SIGKILL');
    await sleep(PAUSE_MS);
  }
  throw new Error(`the process of VM ${id} does not end after SIGKILL`);
}

async function processesOf(id: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await processIds()) {
    if ((await commandLine(pid)).includes(`/vms/${id}/files/qmp`)) found.push(pid);
  }
  return found;
}

async function commandLine(pid: number): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/cmdline`, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return '';
    throw error;
  }
}
