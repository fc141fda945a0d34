import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { locateRange } from '../object-range.ts';
import type { GetOptions, ObjectInfo, StoredObject } from '../object-store.ts';
import { refuseLinks } from './place-object.ts';

/** Never through a symbolic link. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
const CHUNK_BYTES = 256 * 1024;

/** Opens the file of an object and a stream of its range. Throws the errors of the file system. */
export async function readObject(
  key: string,
  path: string,
  { range, signal }: GetOptions,
): Promise<StoredObject> {
  await refuseLinks(dirname(path));
  const file = await open(path, READ);
  try {
    const info = infoOf(key, await file.stat());
    const { first, length } = locateRange(range, info.size);
    return { ...info, first, length, body: await streamOf(file, first, length, signal) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The properties of an object from those of its file. */
export function infoOf(key: string, { size, mtimeMs, mtime, ino }: Stats): ObjectInfo {
  // A replaced object is another file; the inode tells two of the same size and millisecond apart.
  const etag = [ino, size, Math.trunc(mtimeMs * 1000)].map((n) => n.toString(36)).join('-');
  return { key, size, modifiedAt: mtime, etag };
}

async function streamOf(
  file: FileHandle,
  first: number,
  length: number,
  signal: AbortSignal,
): Promise<Readable> {
  if (length === 0) {
    await file.close();
    return Readable.from([]);
  }
  const end = first + length - 1;
  const stream = file.createReadStream({ start: first, end, highWaterMark: CHUNK_BYTES });
  return addAbortSignal(signal, stream);
}
