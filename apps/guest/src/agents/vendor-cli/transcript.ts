import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { giveToOwner } from '../processes/process-owner.ts';

/** A CLI's file of a conversation, packed for transport. */
export interface Transcript {
  /** Relative to the directory of the CLI's transcripts. */
  readonly path: string;
  /** Its gzipped bytes, in Base64. */
  readonly gzip: string;
}

/** Largest transcript to unpack, in bytes. */
const MAX_BYTES = 256 * 1024 * 1024;

/** Whether the directory of a CLI's transcripts contains this conversation. */
export function hasTranscript(directory: string, conversation: string): boolean {
  return pathOf(directory, conversation) !== undefined;
}

/** The packed transcript of a conversation; undefined when there is none. */
export function packTranscript(directory: string, conversation: string): Transcript | undefined {
  const path = pathOf(directory, conversation);
  if (path === undefined) return undefined;
  return { path, gzip: gzipSync(readFileSync(join(directory, path))).toString('base64') };
}

/** Unpacks a transcript for the CLI, owned by the owner of `home`. Does not overwrite an existing one. */
export async function unpackTranscript(
  home: string,
  directory: string,
  { path: name, gzip }: Transcript,
): Promise<void> {
  const file = join(directory, name);
  const bytes = gunzipSync(Buffer.from(gzip, 'base64'), { maxOutputLength: MAX_BYTES });
  const made = await mkdir(dirname(file), { recursive: true });
  try {
    await writeFile(file, bytes, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw error;
  }
  const inside = made === undefined ? [] : await readdir(made, { recursive: true });
  const created = made === undefined ? [file] : [made, ...inside.map((name) => join(made, name))];
  await giveToOwner(home, created);
}

function pathOf(directory: string, conversation: string): string | undefined {
  const names = readdirIfExists(directory);
  return names.find((name) => name.endsWith(`${conversation}.jsonl`));
}

function readdirIfExists(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
