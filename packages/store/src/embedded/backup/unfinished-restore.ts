import { readFile, rename, rm } from 'node:fs/promises';
import { writeFileAtomic } from '@svc/service-kit/process';
import { exists } from '../exists.ts';
import { stopPostmaster } from '../postmaster.ts';

/** A restore was cut off, and what is there is neither the old database nor the restored one. */
export class UnfinishedRestoreError extends Error {
  override readonly name = 'UnfinishedRestoreError';

  constructor() {
    super('a restore of the database has begun and not finished');
  }
}

/** Notes beside a cluster that it is being replaced, and where the one goes that is there. Undefined: there is none. */
export async function beginReplacement(
  cluster: string,
  replaced: string | undefined,
): Promise<void> {
  await writeFileAtomic(noteOf(cluster), JSON.stringify({ replaced: replaced ?? null }));
}

/** Notes that a cluster has been replaced. */
export async function endReplacement(cluster: string): Promise<void> {
  await rm(noteOf(cluster), { force: true });
}

/** Puts back what was there before a replacement that has not ended. Does nothing if there is none. */
export async function undoReplacement(cluster: string): Promise<void> {
  const note = await readNote(cluster);
  if (note === undefined) return;
  const { replaced } = note;
  // Otherwise, the cluster that was there has not been moved yet.
  const isReplaced = replaced === null || (await exists(replaced));
  if (isReplaced) {
    // It may have outlived the process that was to restore it.
    if (await exists(cluster)) await stopPostmaster(cluster);
    await rm(cluster, { recursive: true, force: true });
  }
  if (isReplaced && replaced !== null) await rename(replaced, cluster);
  await endReplacement(cluster);
}

/** @throws UnfinishedRestoreError */
export async function requireNoReplacement(cluster: string): Promise<void> {
  if ((await readNote(cluster)) !== undefined) throw new UnfinishedRestoreError();
}

async function readNote(
  cluster: string,
): Promise<{ readonly replaced: string | null } | undefined> {
  const text = await readFile(noteOf(cluster), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return text === undefined ? undefined : JSON.parse(text);
}

function noteOf(cluster: string): string {
  return `${cluster}.restoring`;
}
