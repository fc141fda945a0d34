import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { formatRecord, type JournalRecord, type StoredFrame } from './format.ts';
import {
  firstSeqOf,
  newSegment,
  readSegment,
  type ScannedFrames,
  type Segment,
  scanSegment,
} from './segment.ts';

export interface SegmentedLogOptions {
  readonly directory: string;
  /** The newest frames kept, in bytes; only whole segments beyond it are dropped. */
  readonly maxBytes: number;
  /** A segment of this size, in bytes, gets no more frames. */
  readonly segmentBytes: number;
}

/**
 * The frames of a journal on disk, in segments of consecutive numbers: it appends to the last segment and drops the
 * oldest ones. Its caller serializes the writes; reads may run beside them.
 */
export class SegmentedLog {
  readonly #options: SegmentedLogOptions;
  #segments: Segment[] = [];
  #file: FileHandle | undefined;

  constructor(options: SegmentedLogOptions) {
    this.#options = options;
  }

  /** Adds the segments that an earlier process wrote. */
  async scan(): Promise<ScannedFrames> {
    const { directory } = this.#options;
    const names = await readdir(directory);
    const firsts = names.map(firstSeqOf).filter((first) => first !== undefined);
    let lastN = 0;
    let taskRunning: boolean | undefined;
    const versions = new Map<string, number>();
    for (const first of firsts.sort((a, b) => a - b)) {
      const scanned = await scanSegment(directory, first);
      this.#segments.push(scanned.segment);
      lastN = Math.max(lastN, scanned.lastN);
      taskRunning = scanned.taskRunning ?? taskRunning;
      for (const [bundle, version] of scanned.versions) versions.set(bundle, version);
    }
    return { lastN, taskRunning, versions };
  }

  /** The number of the oldest frame; undefined when there is none. */
  get firstSeq(): number | undefined {
    return this.#segments.find(({ count }) => count > 0)?.first;
  }

  /** The number of the newest frame; 0 before the first segment. */
  get lastSeq(): number {
    const newest = this.#segments.at(-1);
    return newest === undefined ? 0 : newest.first + newest.count - 1;
  }

  /** The size of the segments with frames from `seq` on, in bytes. */
  bytesFrom(seq: number): number {
    return this.#segments
      .filter(({ first, count }) => first + count > seq)
      .reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Appends consecutively numbered records: all of them, or none when it rejects. */
  async append(records: readonly JournalRecord[]): Promise<void> {
    const [first] = records;
    if (first === undefined) return;
    const segment = await this.#segmentFor(first.seq);
    const bytes = Buffer.from(records.map(formatRecord).join(''));
    this.#file ??= await open(segment.path, 'a', 0o600);
    try {
      await this.#file.appendFile(bytes);
    } catch (error) {
      // A partial line would damage the next one.
      await this.#file.truncate(segment.bytes);
      throw error;
    }
    segment.count += records.length;
    segment.bytes += bytes.length;
  }

  /**
   * Some frames from `seq` on, in order, at least one if there is any. They begin later when frame `seq` has been
   * dropped.
   */
  async read(seq: number): Promise<StoredFrame[]> {
    for (;;) {
      const segment = this.#segments.find(
        ({ first, count }) => count > 0 && first + count - 1 >= seq,
      );
      if (segment === undefined) return [];
      try {
        return await readSegment(segment, seq);
      } catch (error) {
        // A segment dropped during the read is no failure.
        if (this.#segments.includes(segment)) throw error;
      }
    }
  }

  /** Whether there are segments beyond the size limit. */
  get isOverfull(): boolean {
    const [oldest, ...newer] = this.#segments;
    if (oldest === undefined || newer.length === 0) return false;
    return newer.reduce((sum, { bytes }) => sum + bytes, 0) >= this.#options.maxBytes;
  }

  /** Drops the oldest segments beyond the size limit. */
  async trim(): Promise<void> {
    while (this.isOverfull) {
      const [oldest] = this.#segments;
      this.#segments = this.#segments.slice(1);
      if (oldest !== undefined) await rm(oldest.path, { force: true });
    }
  }

  /** Closes the open file; a later append opens it again. */
  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #segmentFor(seq: number): Promise<Segment> {
    const { directory, segmentBytes } = this.#options;
    const current = this.#segments.at(-1);
    const follows = current !== undefined && current.first + current.count === seq;
    if (current !== undefined && follows && current.bytes < segmentBytes) return current;
    await this.close();
    const next = newSegment(directory, seq);
    this.#segments.push(next);
    return next;
  }
}
