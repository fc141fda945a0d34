import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Slots } from '@svc/service-kit/concurrency';
import { unpackPart } from './blob-codec.ts';
import { fetchBlob } from './fetch-blob.ts';
import type { ImageSource } from './image-source.ts';
import { type ImageFile, type ImagePart, sha256 } from './manifest.ts';
import { isZero, readPart, writeAll, writeSparse } from './sparse-file.ts';

export interface FetchFileOptions {
  readonly file: ImageFile;
  /** Absent, or what an interrupted call with the same manifest left. */
  readonly path: string;
  readonly source: ImageSource;
  readonly slots: Slots;
  /** Called for each part that is there, with the size of its blob. */
  readonly onPart: (bytes: number) => void;
}

/** Fetches the parts of a file that are not there yet. The file is on disk on return. @throws ImageRefusedError */
export async function fetchFile(options: FetchFileOptions, signal: AbortSignal): Promise<void> {
  const { file, path } = options;
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
  const handle = await open(path, flags, 0o644);
  try {
    // The jailed process that reads the image has another user.
    await handle.chmod(0o644);
    // Nothing of a file without blocks has to be compared.
    const isNew = (await handle.stat()).blocks === 0;
    await handle.truncate(file.size);
    await fetchParts(handle, isNew, options, signal);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns when no part is in transfer any more, also after a failure, which stops the others. */
async function fetchParts(
  handle: FileHandle,
  isNewFile: boolean,
  { file, source, slots, onPart }: FetchFileOptions,
  signal: AbortSignal,
): Promise<void> {
  const stopping = new AbortController();
  const either = AbortSignal.any([signal, stopping.signal]);
  const transfers = file.parts.map((part) =>
    slots
      .run(async () => {
        either.throwIfAborted();
        await fetchPart(handle, isNewFile, part, source, either);
        onPart(part.blob.size);
      }, either)
      .catch((error: unknown) => {
        stopping.abort(error);
        throw error;
      }),
  );
  await Promise.allSettled(transfers);
  signal.throwIfAborted();
  stopping.signal.throwIfAborted();
}

async function fetchPart(
  handle: FileHandle,
  isNewFile: boolean,
  part: ImagePart,
  source: ImageSource,
  signal: AbortSignal,
): Promise<void> {
  const earlier = isNewFile ? undefined : await readPart(handle, part.offset, part.size);
  const isNew = earlier === undefined || isZero(earlier);
  if (!isNew && sha256(earlier) === part.sha256) return;
  const content = await unpackPart(await fetchBlob(source, part.blob, signal), part);
  const write = isNew ? writeSparse : writeAll;
  await write(handle, content, part.offset);
}
