import { readFile, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Image, loadImage } from '@napi-rs/canvas';
import { LIMITS } from '../limits.ts';

/** An image that can be drawn. */
export type LoadedImage = Image;

const FETCH_MS = 30_000;

/** Loads an image from a data:, file: or http(s): address. Rejects if it cannot be had or is no image. */
export async function loadPicture(url: URL): Promise<LoadedImage> {
  return loadImage(await readResource(url));
}

/** The bytes behind a data:, file: or http(s): address, at most `LIMITS.file`. */
export async function readResource(url: URL): Promise<Buffer> {
  if (url.protocol === 'file:') {
    const path = fileURLToPath(url);
    const { size } = await stat(path);
    if (size > LIMITS.file) throw new RangeError(`${path} is larger than ${LIMITS.file} bytes`);
    return readFile(path);
  }
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok) throw new Error(`${url.href} answered ${response.status}`);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.byteLength;
    if (size > LIMITS.file) throw new RangeError(`${url.href} is larger than ${LIMITS.file} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
