import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { readDataDirectoryId } from './data-directory-id.ts';

/** The data directory to which an index is assigned. */
export interface RegistryEntry {
  readonly dataDir: string;
  /** Undefined when a version of svc without ids has made the entry. */
  readonly id: string | undefined;
}

/** The entry of a data directory that is in use. */
export interface OwnEntry extends RegistryEntry {
  readonly id: string;
}

/** The assigned indexes of a registry. */
export async function readEntries(root: string): Promise<Map<number, RegistryEntry>> {
  const entries = new Map<number, RegistryEntry>();
  for (const name of await readdir(entriesDir(root))) {
    if (!/^\d+$/.test(name)) continue;
    const index = Number(name);
    const dataDir = await readFile(entryFile(root, index), 'utf8');
    entries.set(index, { dataDir, id: await readId(root, index, dataDir) });
  }
  return entries;
}

/** Assigns an index, or replaces its entry. */
export async function writeEntry(root: string, index: number, entry: OwnEntry): Promise<void> {
  await writeId(root, index, entry);
  await writeFile(entryFile(root, index), entry.dataDir, { mode: 0o600 });
}

/** Adds the id to an entry that has none. */
export async function writeId(root: string, index: number, entry: OwnEntry): Promise<void> {
  await mkdir(idsDir(root), { recursive: true });
  // In a file of its own, because versions without ids take all of an entry for the path. They leave this file behind when
  // they free the index, so that it names the path, too.
  await writeFile(idFile(root, index), `${entry.id}\n${entry.dataDir}`, { mode: 0o600 });
}

/** Frees an index. */
export async function removeEntry(root: string, index: number): Promise<void> {
  await rm(entryFile(root, index), { force: true });
  await rm(idFile(root, index), { force: true });
}

/**
 * Whether the data directory of an entry certainly no longer exists. An unreadable mount does exist, and a directory without
 * an id may be where a file system is not mounted at the moment.
 */
export async function isOrphan({ dataDir, id }: RegistryEntry): Promise<boolean> {
  if (!(await exists(dataDir))) return true;
  if (id === undefined) return false;
  const current = await readDataDirectoryId(dataDir).catch(() => undefined);
  return current !== undefined && current !== id;
}

/** Where the entries are: one file for each assigned index, with the path of its data directory. */
export const entriesDir = (root: string) => `${root}/instances`;
const entryFile = (root: string, index: number) => `${entriesDir(root)}/${index}`;
const idsDir = (root: string) => `${root}/data-directory-ids`;
const idFile = (root: string, index: number) => `${idsDir(root)}/${index}`;

async function readId(root: string, index: number, dataDir: string): Promise<string | undefined> {
  const text = await readFile(idFile(root, index), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const [id, ...path] = text.split('\n');
  return path.join('\n') === dataDir ? id : undefined;
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ENOENT');
  }
}
