import type { FileHandle } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';
import { PART_BYTES } from './manifest.ts';

/** Blocks of zeros of this size become holes. */
const BLOCK_BYTES = 4096;
const ZEROS = Buffer.alloc(BLOCK_BYTES);

/**
 * The offsets of the parts of a file that are not holes as a whole. Takes no longer for a file with large holes, which are
 * not read.
 */
export async function partsWithData(path: string): Promise<number[]> {
  const map: readonly { start: number; length: number; data: boolean }[] = JSON.parse(
    await runProgram('qemu-img', ['map', '-f', 'raw', '--output=json', path]),
  );
  const offsets = new Set<number>();
  for (const { start, length, data } of map) {
    if (!data) continue;
    const first = start - (start % PART_BYTES);
    for (let at = first; at < start + length; at += PART_BYTES) offsets.add(at);
  }
  return [...offsets].sort((a, b) => a - b);
}

/** Reads bytes of a file. Shorter than `size` where the file ends. */
export async function readPart(file: FileHandle, offset: number, size: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await file.read(buffer, length, size - length, offset + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** Writes bytes to a place of a file that has only zeros, and leaves holes where they are zero. */
export async function writeSparse(
  file: FileHandle,
  content: Buffer,
  offset: number,
): Promise<void> {
  for (const [start, end] of runsOfData(content)) {
    await writeAll(file, content.subarray(start, end), offset + start);
  }
}

/** Writes bytes to a place of a file, whatever it has there. */
export async function writeAll(file: FileHandle, content: Buffer, offset: number): Promise<void> {
  let written = 0;
  while (written < content.length) {
    const rest = content.length - written;
    written += (await file.write(content, written, rest, offset + written)).bytesWritten;
  }
}

export function isZero(content: Buffer): boolean {
  return runsOfData(content).next().done === true;
}

/** Start and end of each run of blocks that are not zero. */
function* runsOfData(content: Buffer): Generator<readonly [number, number]> {
  let start: number | undefined;
  for (let at = 0; at < content.length; at += BLOCK_BYTES) {
    const block = content.subarray(at, at + BLOCK_BYTES);
    if (!block.equals(ZEROS.subarray(0, block.length))) {
      start ??= at;
    } else if (start !== undefined) {
      yield [start, at];
      start = undefined;
    }
  }
  if (start !== undefined) yield [start, content.length];
}
