import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { compareKeys } from '../object-key.ts';
import { componentOfDirectory, componentOfFile } from './file-names.ts';
import { isMissing } from './fs-failures.ts';

/** Entries of a directory that are held in memory at once. */
const BATCH = 2000;

/** A file or directory, with the text by which it is ordered among its siblings. */
interface Entry {
  readonly name: string;
  /** A directory's ends in `/`: its keys are ordered as if they were one key that goes on with `/`. */
  readonly text: string;
}

/** An object found by {@link walk}. */
export interface Found {
  readonly key: string;
  readonly path: string;
}

/**
 * Finds the objects in a directory whose keys are greater than `after`, in the order of their keys. `prefix` is the
 * common part of the keys. Symbolic links and names that are no objects are passed over. However large the directory,
 * at most twice `batch` entries of each level are in memory.
 */
export async function* walk(
  directory: string,
  prefix: string,
  after: string,
  signal: AbortSignal,
  batch = BATCH,
): AsyncGenerator<Found> {
  for (let seen: Entry | undefined; ; ) {
    const { entries, more } = await smallest(directory, prefix, after, seen, signal, batch);
    for (const { name, text } of entries) {
      const key = prefix + text;
      const path = join(directory, name);
      if (text.endsWith('/')) yield* walk(path, key, after, signal, batch);
      else yield { key, path };
    }
    seen = entries.at(-1);
    if (!more) return;
  }
}

async function smallest(
  directory: string,
  prefix: string,
  after: string,
  seen: Entry | undefined,
  signal: AbortSignal,
  batch: number,
): Promise<{ entries: Entry[]; more: boolean }> {
  const kept: Entry[] = [];
  let more = false;
  const cut = () => {
    kept.sort((a, b) => compareKeys(a.text, b.text));
    more ||= kept.length > batch;
    kept.length = Math.min(kept.length, batch);
  };
  for await (const child of children(directory)) {
    signal.throwIfAborted();
    const entry = entryOf(child);
    if (entry === undefined || !mayFollow(prefix + entry.text, after)) continue;
    if (seen !== undefined && compareKeys(entry.text, seen.text) <= 0) continue;
    kept.push(entry);
    if (kept.length >= 2 * batch) cut();
  }
  cut();
  return { entries: kept, more };
}

async function* children(directory: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(directory, { bufferSize: 256 });
  } catch (error) {
    // Another call may have removed the last object and its directory.
    if (!isMissing(error)) throw error;
  }
}

function entryOf(child: Dirent): Entry | undefined {
  const { name } = child;
  const text = child.isDirectory()
    ? componentOfDirectory(name)
    : child.isFile()
      ? componentOfFile(name)
      : undefined;
  if (text === undefined) return undefined;
  return { name, text: child.isDirectory() ? `${text}/` : text };
}

/** Whether this key, or one that starts with this prefix, can be greater than `after`. */
function mayFollow(text: string, after: string): boolean {
  return compareKeys(text, after) > 0 || (text.endsWith('/') && after.startsWith(text));
}
