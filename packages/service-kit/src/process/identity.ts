import { readFile } from 'node:fs/promises';

/** Names one process for ever: a pid alone is reused. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after boot at which it started. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** The identity of a living process; undefined when there is none, or only a zombie. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readIfPresent(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command's name, in parentheses, may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTicks = Number(fields[19]);
  if (state === 'Z' || state === 'X' || !Number.isSafeInteger(startTicks)) return undefined;
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  return { pid, startTicks, bootId };
}

/** Whether that very process still lives. */
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
