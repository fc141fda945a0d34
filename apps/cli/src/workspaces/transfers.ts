import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, rename, rm, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { SvcClient } from '@svc/sdk';
import type { WorkspaceLocation } from '../arguments/workspace.ts';
import { TransferBar } from '../output/transfer-bar.ts';

const CHUNK_BYTES = 1024 * 1024;
const PART = /^\.svc-[0-9a-f]{12}\.part$/;

/** Whether a file with this name is what a killed download has left behind. */
export function isPart(name: string): boolean {
  return PART.test(name);
}

/** Uploads `size` bytes of an open file, completely or not at all. */
export async function uploadFile(
  client: SvcClient,
  { id, path }: WorkspaceLocation,
  { file, size }: { readonly file: FileHandle; readonly size: number },
  bar: TransferBar,
  signal: AbortSignal,
): Promise<void> {
  const stream = file
    .createReadStream({ highWaterMark: CHUNK_BYTES, autoClose: false })
    .pipe(bar.count());
  await client.workspaces.write(id, path, { stream, size }, { signal });
}

/** How a download shows, and the time that its file gets; default: now. */
interface DownloadOptions {
  /** Of a bar of its own, or a bar that it shares with others. */
  readonly bar: string | TransferBar;
  readonly modified?: Date;
}

/** Downloads a file, completely or not at all. Returns its size in bytes. */
export async function downloadFile(
  client: SvcClient,
  { id, path }: WorkspaceLocation,
  target: string,
  { bar, modified }: DownloadOptions,
  signal: AbortSignal,
): Promise<number> {
  const { stream, size } = await client.workspaces.readStream(id, path, { signal });
  const part = join(dirname(target), `.svc-${randomBytes(6).toString('hex')}.part`);
  try {
    const shown = typeof bar === 'string' ? new TransferBar(bar, size) : bar;
    const written = createWriteStream(part, { flags: 'wx' });
    await pipeline(stream, shown.count(), written, { signal });
    if (modified !== undefined) await utimes(part, modified, modified);
    await rename(part, target);
    return written.bytesWritten;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
