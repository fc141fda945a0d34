import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { SLOT_COUNT, slotUid } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';

const DEADLINE_MS = 5000;
const PAUSE_MS = 20;

/** Whether any process runs as one of an instance's users. */
export async function hasProcesses(instance: number): Promise<boolean> {
  return (await processesOf(instance)).length > 0;
}

/**
 * Kills every process that runs as one of an instance's users, and waits until they are gone: VMs
 * whose data directory was deleted have no owner, and the users are about to get new ones.
 *
 * @throws NetworkError `network_setup_failed` when one does not end within 5 s
 */
export async function endProcesses(instance: number): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const orphans = await processesOf(instance);
    if (orphans.length === 0) return;
    if (performance.now() > deadline) {
      const message = `processes ${orphans.join(', ')} of a deleted service do not end when killed`;
      throw new NetworkError('network_setup_failed', message);
    }
    for (const pid of orphans) killIfThere(pid);
    await delay(PAUSE_MS);
  }
}

async function processesOf(instance: number): Promise<number[]> {
  const [first, end] = [slotUid(instance, 0), slotUid(instance, SLOT_COUNT)];
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const owned = await Promise.all(
    pids.map(async (pid) => {
      const uid = await uidOf(pid);
      return uid !== undefined && uid >= first && uid < end ? [pid] : [];
    }),
  );
  return owned.flat();
}

/** The real user of a process that has not ended; a zombie holds nothing any more. */
async function uidOf(pid: number): Promise<number | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    if (/^State:\s+[ZX]/m.test(status)) return undefined;
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return undefined;
    throw error;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
