import { readFileSync, writeFileSync } from 'node:fs';
import { chown, stat } from 'node:fs/promises';

/** Who a process runs as; nothing: as we do. */
export interface ProcessOwner {
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * The owner of the agent's home directory, which is whom its processes run as. Only root can become another;
 * everybody else stays who they are.
 */
export async function ownerOf(home: string): Promise<ProcessOwner> {
  if (process.getuid?.() !== 0) return {};
  const { uid, gid } = await stat(home);
  return { uid, gid };
}

/** Gives files to the owner of the agent's home directory. Only root can; everybody else's are their own. */
export async function giveToOwner(home: string, paths: readonly string[]): Promise<void> {
  const { uid, gid } = await ownerOf(home);
  if (uid === undefined || gid === undefined) return;
  for (const path of paths) await chown(path, uid, gid);
}

/**
 * Makes a process an ordinary candidate of the out-of-memory killer. The runtime is protected from it, and what
 * it starts would inherit that.
 */
export function unprotect(pid: number): void {
  if (Number(readFileSync('/proc/self/oom_score_adj', 'utf8')) >= 0) return;
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '0');
  } catch (error) {
    // It has ended already.
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
