import { readdir, readFile, readlink } from 'node:fs/promises';
import { orIfAbsent } from '@svc/service-driver';
import type { InstanceNames } from './instance.ts';

/** A process that belongs to one service. */
export interface ServiceProcess {
  readonly pid: number;
  readonly kind: 'vm' | 'database' | 'other';
  readonly command: string;
}

/** Lists the processes of a service: the service itself, its VMs, database and helpers. */
export async function processesOf(instance: InstanceNames): Promise<ServiceProcess[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map((pid) => inspect(pid, instance)));
  return found.filter((process) => process !== undefined);
}

/** Sends SIGKILL to a process. Succeeds also when the process has already ended. */
export function killHard(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function inspect(pid: number, instance: InstanceNames): Promise<ServiceProcess | undefined> {
  if (pid === process.pid) return undefined;
  const [status, words, environment, directory] = await Promise.all([
    orIfAbsent(readFile(`/proc/${pid}/status`, 'utf8'), ''),
    orIfAbsent(readFile(`/proc/${pid}/cmdline`, 'utf8'), ''),
    readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''),
    readlink(`/proc/${pid}/cwd`).catch(() => ''),
  ]);
  // A zombie holds no resource except its process id.
  if (status === '' || /^State:\s+[ZX]/m.test(status)) return undefined;
  const command = words.replaceAll('\0', ' ').trim();
  const { dataDir, runDir, users } = instance;
  const user = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
  if ((user >= users[0] && user < users[1]) || command.includes(`${runDir}/jail`)) {
    return { pid, kind: 'vm', command };
  }
  if (isBelow(directory, dataDir)) return { pid, kind: 'database', command };
  const named = environment.split('\0').includes(`SVC_DATA_DIR=${dataDir}`);
  return named || command.includes(dataDir) ? { pid, kind: 'other', command } : undefined;
}

function isBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`);
}
