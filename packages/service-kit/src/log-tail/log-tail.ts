import type { Readable } from 'node:stream';
import { LIMITS, type LogsResponse, type LogTail } from '@svc/contract';
import { GrowingBuffer } from '../streams/index.ts';

/** The end of a log, which is as much of it as any request can ask for. */
export interface LogEnd {
  /** The last bytes, at most `LIMITS.logBytesMax`. */
  readonly bytes: Buffer;
  /** The length of the whole log. */
  readonly totalBytes: number;
}

const NEWLINE = 0x0a;
/** Most bytes of a character after its first. */
const CHARACTER_REST = 3;

/** Reads a log to its end and keeps only its last bytes. Rejects with the error of the stream. */
export async function readLogEnd(log: Readable): Promise<LogEnd> {
  const end = new GrowingBuffer();
  let totalBytes = 0;
  for await (const chunk of log as AsyncIterable<Buffer>) {
    totalBytes += chunk.length;
    end.append(chunk);
    // Not before twice as much is there, so that each byte is copied about once.
    if (end.length >= 2 * LIMITS.logBytesMax) end.append(end.take().subarray(-LIMITS.logBytesMax));
  }
  return { bytes: end.take().subarray(-LIMITS.logBytesMax), totalBytes };
}

/**
 * The requested tail of a log: its last bytes or lines, within the byte limit in both cases. Never begins or ends in
 * the middle of a UTF-8 character, even if the log was read while it was being written.
 */
export function tailOf(log: LogEnd, wanted: LogTail): LogsResponse {
  const kept = textOf(log, wanted);
  return {
    content: kept.toString('utf8'),
    truncated: kept.length < log.totalBytes,
    total_bytes: log.totalBytes,
  };
}

/**
 * The shortest end of a log that has the same requested tail and, as far as the log goes back, everything from the byte
 * at `from` on.
 */
export function endWith(log: LogEnd, wanted: LogTail, from = log.totalBytes): LogEnd {
  const { bytes, totalBytes } = log;
  const text = textOf(log, wanted);
  // The bytes before show which ones at the start do not begin a character.
  const first = text.byteOffset - bytes.byteOffset - CHARACTER_REST;
  const known = bytes.length - (totalBytes - from);
  return { bytes: bytes.subarray(Math.max(0, Math.min(first, known))), totalBytes };
}

function textOf({ bytes, totalBytes }: LogEnd, wanted: LogTail): Buffer {
  const window = 'bytes' in wanted ? wanted.bytes : LIMITS.logBytesMax;
  const cut = bytes.subarray(Math.max(0, bytes.length - window));
  const whole = wholeText(cut, cut.length < totalBytes);
  return 'lines' in wanted ? lastLines(whole, wanted.lines) : whole;
}

/** The bytes without a partial character at either edge. */
export function wholeText(bytes: Buffer, cutAtStart: boolean): Buffer {
  let start = 0;
  while (cutAtStart && start < CHARACTER_REST && isContinuation(bytes[start])) start += 1;
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
