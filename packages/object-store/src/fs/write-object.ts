import { type FileHandle, open } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { exactly } from '../exactly.ts';
import type { ObjectBody, PutOptions } from '../object-store.ts';
import { onFiles } from './fs-failures.ts';

/** Writes a body to a new file, which is on disk on return. An error of the body passes as it is. */
export async function writeObject(
  path: string,
  body: ObjectBody,
  { size, signal }: PutOptions,
): Promise<void> {
  const file = await onFiles(signal, () => open(path, 'wx', 0o600));
  try {
    await writeChunks(file, body, { size, signal });
    await onFiles(signal, () => file.sync());
  } finally {
    await file.close();
  }
}

async function writeChunks(
  file: FileHandle,
  body: ObjectBody,
  { size, signal }: PutOptions,
): Promise<void> {
  if (!(body instanceof Uint8Array)) addAbortSignal(signal, body);
  try {
    for await (const chunk of exactly(body, size)) {
      await onFiles(signal, () => file.writeFile(chunk));
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
