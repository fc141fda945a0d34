import type { FileHandle } from 'node:fs/promises';
import { LIMITS, type LogsResponse, type LogTail } from '@svc/contract';

const NEWLINE = 0x0a;

/**
 * The tail of a log file: its last bytes or lines, within the byte limit in both cases. Never begins or ends in the
 * middle of a UTF-8 character, even while the file is being written.
 */
export async function tailOf(file: FileHandle, wanted: LogTail): Promise<LogsResponse> {
  const { size } = await file.stat();
  const window = 'bytes' in wanted ? wanted.bytes : LIMITS.logBytesMax;
  const length = Math.min(size, window, LIMITS.logBytesMax);
  const bytes = await readRange(file, size - length, length);
  const cutAtStart = length < size;
  const whole = wholeText(bytes, cutAtStart);
  const kept = 'lines' in wanted ? lastLines(whole, wanted.lines) : whole;
  return {
    content: kept.toString('utf8'),
    truncated: kept.length < size,
    total_bytes: size,
  };
}

/** The bytes from `from` to `from + length` of the file, or fewer if it has shrunk since. */
async function readRange(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** The bytes without a partial character at either edge. */
export function wholeText(bytes: Buffer, cutAtStart: boolean): Buffer {
  let start = 0;
  while (cutAtStart && start < 3 && isContinuation(bytes[start])) start += 1;
  return bytes.subarray(start, bytes.length - incompleteEnd(bytes));
}

/** The last `count` lines. A line feed at the very end belongs to the last line. */
export function lastLines(bytes: Buffer, count: number): Buffer {
  let at = bytes.length - 1;
  if (bytes[at] === NEWLINE) at -= 1;
  for (let lines = 0; at >= 0; at -= 1) {
    if (bytes[at] !== NEWLINE) continue;
    lines += 1;
    if (lines === count) return bytes.subarray(at + 1);
  }
  return bytes;
}

/** The number of bytes at the end that belong to an incomplete character. */
function incompleteEnd(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return back < lengthOf(byte) ? back : 0;
  }
  return 0;
}

/** The length of a character that starts with this byte, in bytes. */
function lengthOf(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
