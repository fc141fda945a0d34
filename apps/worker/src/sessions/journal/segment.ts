import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { parseRecord, parseRotation, runsTask, type StoredFrame } from './format.ts';

const NAME = /^(\d{16})\.frames$/;
const NAME_DIGITS = 16;
const LINE_FEED = 0x0a;

/** One file of a journal: frames numbered consecutively from `first`. */
export interface Segment {
  readonly first: number;
  readonly path: string;
  /** The number of frames in it. */
  count: number;
  /** The length of the file up to its last complete frame, in bytes. */
  bytes: number;
}

/** What the frames that an earlier process wrote say. */
export interface ScannedFrames {
  /** The highest number of a guest's message in them; 0 without one. */
  readonly lastN: number;
  /**
   * Whether the guest's last task is still running; undefined when none starts or ends in them. The tasks of earlier starts
   * of the session ended with their sandboxes.
   */
  readonly taskRunning: boolean | undefined;
  /** The newest version of each bundle whose rotation they announce. */
  readonly versions: ReadonlyMap<string, number>;
}

/** A segment as an earlier process left it. */
export interface ScannedSegment extends ScannedFrames {
  readonly segment: Segment;
}

/** An empty segment that begins at `first`; its file does not exist yet. */
export function newSegment(directory: string, first: number): Segment {
  const name = `${String(first).padStart(NAME_DIGITS, '0')}.frames`;
  return { first, path: join(directory, name), count: 0, bytes: 0 };
}

/** The number of a segment's first frame, from the name of its file; undefined for any other file. */
export function firstSeqOf(fileName: string): number | undefined {
  const found = NAME.exec(fileName)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** The frames of a segment from number `seq` on. */
export async function readSegment(segment: Segment, seq: number): Promise<StoredFrame[]> {
  const { bytes } = segment;
  const complete = (await readFile(segment.path)).subarray(0, bytes).toString('utf8');
  const frames: StoredFrame[] = [];
  for (const line of complete.split('\n')) {
    const record = parseRecord(line)?.record;
    if (record !== undefined && record.seq >= seq) {
      frames.push({ seq: record.seq, text: record.text });
    }
  }
  return frames;
}

/** Reads a segment that an earlier process wrote, and truncates it after its last complete frame. */
export async function scanSegment(directory: string, first: number): Promise<ScannedSegment> {
  const segment = newSegment(directory, first);
  const content = await readFile(segment.path);
  let lastN = 0;
  let taskRunning: boolean | undefined;
  const versions = new Map<string, number>();
  for (let at = 0; at < content.length; ) {
    const end = content.indexOf(LINE_FEED, at);
    if (end === -1) break;
    const line = parseRecord(content.toString('utf8', at, end));
    if (line === undefined || line.record.seq !== first + segment.count) break;
    segment.count += 1;
    lastN = Math.max(lastN, line.record.n);
    taskRunning = runsTask(line.record.n, line.type) ?? taskRunning;
    const rotation = line.type === 'system' ? parseRotation(line.record.text) : undefined;
    if (rotation !== undefined) versions.set(rotation.bundle, rotation.version);
    at = end + 1;
    segment.bytes = at;
  }
  if (segment.bytes < content.length) await truncate(segment.path, segment.bytes);
  return { segment, lastN, taskRunning, versions };
}
