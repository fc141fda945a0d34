import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { giveToOwner } from '../processes/process-owner.ts';

/** A file in which a CLI keeps a conversation, to be taken elsewhere. */
export interface Transcript {
  /** Below the directory of the CLI's transcripts. */
  readonly path: string;
  /** Its bytes, compressed, in Base64. */
  readonly gzip: string;
}

/** Beyond this a transcript is not unpacked, in bytes. */
const MAX_BYTES = 256 * 1024 * 1024;

/** Whether a CLI has kept this conversation below the directory of its transcripts. */
export function hasTranscript(directory: string, conversation: string): boolean {
  return pathOf(directory, conversation) !== undefined;
}

/** The transcript of a conversation; undefined when there is none. */
export function packTranscript(directory: string, conversation: string): Transcript | undefined {
  const path = pathOf(directory, conversation);
  if (path === undefined) return undefined;
  return { path, gzip: gzipSync(readFileSync(join(directory, path))).toString('base64') };
}

/** Puts a transcript where the CLI looks for it, as the owner of `home`; one that is there stays as it is. */
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
  const names = readdirIfThere(directory);
  return names.find((name) => name.endsWith(`${conversation}.jsonl`));
}

function readdirIfThere(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
