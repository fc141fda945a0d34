import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { processIds, signalProcess } from '@svc/service-kit/process';
import { SLOT_COUNT, slotUid } from '../addresses.ts';
import { NetworkError } from '../network-error.ts';

const DEADLINE_MS = 5000;
const POLL_MS = 20;

/** Whether any process runs as one of an instance's users. */
export async function hasProcesses(instance: number): Promise<boolean> {
  return (await processesOf(instance)).length > 0;
}

/**
 * Kills every process that runs as one of an instance's users, and waits until all have ended. Used when the data
 * directory of the VMs was deleted and the users are about to be reused.
 *
 * @throws NetworkError `network_setup_failed` when a process does not end within 5 s
 */
export async function endProcesses(instance: number): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const orphans = await processesOf(instance);
    if (orphans.length === 0) return;
    if (performance.now() > deadline) {
      const message = `processes ${orphans.join(', ')} of a deleted service do not end after SIGKILL`;
      throw new NetworkError('network_setup_failed', message);
    }
    for (const pid of orphans) signalProcess(pid, 'SIGKILL');
    await delay(POLL_MS);
  }
}

async function processesOf(instance: number): Promise<number[]> {
  const [first, end] = [slotUid(instance, 0), slotUid(instance, SLOT_COUNT)];
  const owned = await Promise.all(
    (await processIds()).map(async (pid) => {
      const uid = await uidOf(pid);
      return uid !== undefined && uid >= first && uid < end ? [pid] : [];
    }),
  );
  return owned.flat();
}

/** The real user of a live process. Undefined for a zombie, which holds no resources. */
async function uidOf(pid: number): Promise<number | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    if (/^State:\s+[ZX]/m.test(status)) return undefined;
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
