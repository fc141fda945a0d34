import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { readLine, type StoredFrame } from './format.ts';

const NAME = /^(\d{16})\.frames$/;
const NAME_DIGITS = 16;
const LINE_FEED = 0x0a;

/** One file of a journal: frames whose numbers rise by one from `first` on. */
export interface Segment {
  readonly first: number;
  readonly path: string;
  /** Frames in it. */
  count: number;
  /** Length of the file that is known to be whole. */
  bytes: number;
}

/** What a segment holds besides its frames, as a restart finds it. */
export interface SegmentScan {
  readonly segment: Segment;
  readonly lastN: number;
  /** Whether the last of `task_started` and `task_completed` in it is the former; undefined without either. */
  readonly taskRuns: boolean | undefined;
}

/** An empty segment that begins at `first`. */
export function newSegment(directory: string, first: number): Segment {
  const name = `${String(first).padStart(NAME_DIGITS, '0')}.frames`;
  return { first, path: join(directory, name), count: 0, bytes: 0 };
}

/** The number that a segment's file begins at; undefined for any other file. */
export function firstOf(fileName: string): number | undefined {
  const found = NAME.exec(fileName)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** The frames of a segment from `seq` on. */
export async function readSegment(segment: Segment, seq: number): Promise<StoredFrame[]> {
  const { bytes } = segment;
  const whole = (await readFile(segment.path)).subarray(0, bytes).toString('utf8');
  const frames: StoredFrame[] = [];
  for (const line of whole.split('\n')) {
    const frame = readLine(line)?.frame;
    if (frame !== undefined && frame.seq >= seq) frames.push(frame);
  }
  return frames;
}

/** Reads a segment that an earlier process wrote. What it did not write to the end is cut off. */
export async function scanSegment(directory: string, first: number): Promise<SegmentScan> {
  const segment = newSegment(directory, first);
  const content = await readFile(segment.path);
  let lastN = 0;
  let taskRuns: boolean | undefined;
  for (let at = 0; at < content.length; ) {
    const end = content.indexOf(LINE_FEED, at);
    if (end === -1) break;
    const line = readLine(content.toString('utf8', at, end));
    if (line === undefined || line.frame.seq !== first + segment.count) break;
    segment.count += 1;
    lastN = Math.max(lastN, line.n);
    if (line.type === 'task_started') taskRuns = true;
    if (line.type === 'task_completed') taskRuns = false;
    at = end + 1;
    segment.bytes = at;
  }
  if (segment.bytes < content.length) await truncate(segment.path, segment.bytes);
  return { segment, lastN, taskRuns };
}
