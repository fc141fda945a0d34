import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backupPaths } from './archive.ts';

/** The end of the name of a backup that is being made, or broke off. */
export const UNFINISHED = '.part';
/** A directory with this file is a complete backup, unless its name says that it is unfinished. */
export const MANIFEST = 'backup.json';

export interface Manifest {
  /** From this time on, the database can be restored with this backup. */
  readonly finished_at: string;
  /** The first segment of the write-ahead log that a restore needs. */
  readonly first_segment: string;
}

/** A copy of the cluster. */
export interface BaseBackup {
  readonly name: string;
  /** The directory of the copy. */
  readonly cluster: string;
  readonly finishedAt: Date;
  readonly firstSegment: string;
}

/** The complete backups in a directory, oldest first. */
export async function listBaseBackups(backups: string): Promise<BaseBackup[]> {
  const { base } = backupPaths(backups);
  const found: BaseBackup[] = [];
  for (const name of (await readdir(base).catch(none)).sort()) {
    if (name.endsWith(UNFINISHED)) continue;
    const text = await readFile(join(base, name, MANIFEST), 'utf8').catch(none);
    if (typeof text !== 'string') continue;
    const manifest = JSON.parse(text) as Manifest;
    found.push({
      name,
      cluster: join(base, name, 'cluster'),
      finishedAt: new Date(manifest.finished_at),
      firstSegment: manifest.first_segment,
    });
  }
  return found;
}

/** Removes what broke off. The caller must hold the lock of the backups. */
export async function removeBrokenOff(backups: string): Promise<void> {
  const { base } = backupPaths(backups);
  for (const name of await readdir(base)) {
    if (name.endsWith(UNFINISHED)) await rm(join(base, name), { recursive: true, force: true });
  }
}

/** Removes all but the last `keep` backups, what broke off, and the segments that only the removed ones needed. */
export async function prune(backups: string, keep: number): Promise<void> {
  const { base, wal } = backupPaths(backups);
  const kept = (await listBaseBackups(backups)).slice(-keep);
  const names = new Set(kept.map(({ name }) => name));
  for (const name of await readdir(base)) {
    if (!names.has(name)) await rm(join(base, name), { recursive: true, force: true });
  }
  const first = kept.map(({ firstSegment }) => positionOf(firstSegment)).sort()[0];
  if (first === undefined) return;
  for (const name of await readdir(wal)) {
    // Histories of timelines are small, and every later restore needs them.
    const isSegment = /^[0-9A-F]{24}[.]/.test(name);
    if (isSegment && positionOf(name) < first) await rm(join(wal, name), { force: true });
  }
}

/** The part of a segment's name after its timeline. */
function positionOf(segment: string): string {
  return segment.slice(8, 24);
}

function none(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
  throw error;
}
