import { readFile } from 'node:fs/promises';

/** Identifies one process permanently: a pid alone can be reused. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Its start time in clock ticks after boot. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** The identity of a running process; undefined when there is none, or only a zombie. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readIfPresent(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command name, in parentheses, may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTicks = Number(fields[19]);
  if (state === 'Z' || state === 'X' || !Number.isSafeInteger(startTicks)) return undefined;
  return { pid, startTicks, bootId: await readBootId() };
}

/** The id of the current boot of this machine. */
export async function readBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** Whether this exact process is still running. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const current = await identityOf(identity.pid);
  return (
    current !== undefined &&
    current.startTicks === identity.startTicks &&
    current.bootId === identity.bootId
  );
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
