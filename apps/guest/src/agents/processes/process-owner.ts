import { readFileSync, writeFileSync } from 'node:fs';
import { chown, stat } from 'node:fs/promises';

/** The user and group of a process; empty: those of the runtime. */
export interface ProcessOwner {
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * The owner of the agent's home directory, as whom the agent's processes run. Empty unless the runtime is root, since
 * only root can change the user.
 */
export async function ownerOf(home: string): Promise<ProcessOwner> {
  if (process.getuid?.() !== 0) return {};
  const { uid, gid } = await stat(home);
  return { uid, gid };
}

/** Changes the owner of files to that of the agent's home directory. Does nothing unless the runtime is root. */
export async function giveToOwner(home: string, paths: readonly string[]): Promise<void> {
  const { uid, gid } = await ownerOf(home);
  if (uid === undefined || gid === undefined) return;
  for (const path of paths) await chown(path, uid, gid);
}

/**
 * Makes a process an ordinary candidate for the out-of-memory killer. Otherwise it would inherit the runtime's
 * protection.
 */
export function unprotect(pid: number): void {
  if (Number(readFileSync('/proc/self/oom_score_adj', 'utf8')) >= 0) return;
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '0');
  } catch (error) {
    // The process has already exited.
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
