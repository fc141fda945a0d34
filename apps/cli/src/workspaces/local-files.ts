import { lstat, mkdir, opendir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CliError } from '../output/errors.ts';
import type { SyncedFile } from './plan.ts';
import { isPart } from './transfers.ts';

/** Both listings of a synchronisation are held in memory. */
export const MOST_FILES = 1_000_000;

/** The files under a directory. */
export interface LocalFiles {
  readonly files: ReadonlyMap<string, SyncedFile>;
  /** Symbolic links and special files, which are neither followed nor copied. */
  readonly skipped: readonly string[];
}

/** Lists the files under a directory, with `/` in their paths. A directory that does not exist is empty. */
export async function listLocal(root: string, signal: AbortSignal): Promise<LocalFiles> {
  const files = new Map<string, SyncedFile>();
  const skipped: string[] = [];
  const directories = [''];
  for (let at = directories.pop(); at !== undefined; at = directories.pop()) {
    const entries = await opendir(join(root, at)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && at === '') return [];
      throw error;
    });
    for await (const entry of entries) {
      signal.throwIfAborted();
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory()) directories.push(path);
      else if (!entry.isFile()) skipped.push(path);
      else if (!isPart(entry.name)) {
        const { size, mtimeMs } = await lstat(join(root, path));
        files.set(path, { size, modifiedMs: mtimeMs });
      }
      checkCount(files.size + skipped.length);
    }
  }
  return { files, skipped };
}

/** @throws CliError `too_many_files` */
export function checkCount(count: number): void {
  if (count <= MOST_FILES) return;
  throw new CliError('too_many_files', `there are more than ${MOST_FILES} files`, {
    next: 'synchronise one directory after the other, with :prefix',
  });
}

/**
 * Where a file of a workspace belongs under a directory, whose missing directories it makes.
 * @throws CliError `unsafe_path` when that would be outside, or behind a symbolic link
 */
export async function placeFor(root: string, path: string): Promise<string> {
  const names = path.split('/');
  if (path.includes('\0') || names.some((name) => ['', '.', '..'].includes(name))) unsafe(path);
  let directory = root;
  await mkdir(root, { recursive: true });
  for (const name of names.slice(0, -1)) {
    directory = join(directory, name);
    await mkdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    if (!(await lstat(directory)).isDirectory()) unsafe(path);
  }
  const place = join(root, ...names);
  const present = await lstat(place).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (present !== undefined && !present.isFile()) unsafe(path);
  return place;
}

/** Deletes a listed file, and the directories that it leaves empty. */
export async function removeLocal(root: string, path: string): Promise<void> {
  await rm(join(root, path), { force: true });
  for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) {
    try {
      await rmdir(join(root, parent));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOENT') return;
      throw error;
    }
  }
}

function unsafe(path: string): never {
  throw new CliError('unsafe_path', `${JSON.stringify(path)} cannot be written in the directory`, {
    next: 'remove what is in its way, such as a symbolic link or a directory of the same name',
  });
}
