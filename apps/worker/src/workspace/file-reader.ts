import { LIMITS } from '@svc/contract';
import {
  MicrovmError,
  type MicrovmTree,
  TREE_BATCH,
  type TreeEntry,
  type TreeRange,
  type TreeRangeStatus,
} from '@svc/microvm';
import type { StreamPiece } from './extents.ts';

const MIB = 1024 * 1024;
/** A transfer that breaks goes on where it was, so this bounds only one request. */
const RANGE_BYTES = 32 * MIB;
const BATCH_PATH_BYTES = 512 * 1024;
/** Connections that break one after another without a byte between them. */
const ATTEMPTS = 3;
/** A hostile guest may send a hole after each byte. */
const MAX_PIECES = 250_000;

/** How a file was read, and which pieces of the stream it consists of. */
export interface FileRead {
  readonly status: TreeRangeStatus;
  readonly pieces: readonly StreamPiece[];
}

interface Reading {
  status: TreeRangeStatus;
  readonly pieces: StreamPiece[];
}

/** Reads many files from a guest as one stream, so that small files share chunks. Goes on after a broken connection. */
export class FileReader {
  readonly #tree: Pick<MicrovmTree, 'read'>;
  readonly #files: readonly TreeEntry[];
  readonly #readings = new Map<TreeEntry, Reading>();
  /** Files that were read to their end. */
  readonly #finished = new Set<TreeEntry>();
  #current: TreeEntry | undefined;
  #pieces = 0;
  #position = 0;

  constructor(tree: Pick<MicrovmTree, 'read'>, files: readonly TreeEntry[]) {
    this.#tree = tree;
    this.#files = files;
  }

  /** The number of bytes in the stream so far. */
  get bytes(): number {
    return this.#position;
  }

  /** How a file was read. */
  resultOf(file: TreeEntry): FileRead {
    return this.#readings.get(file) ?? { status: 'complete', pieces: [] };
  }

  /** Whether the file was read, and all of its content is among the first bytes of the stream. */
  isWithin(file: TreeEntry, bytes: number): boolean {
    if (file.size === 0) return true;
    if (!this.#finished.has(file)) return false;
    const last = this.resultOf(file).pieces.findLast((piece) => 'start' in piece);
    return last === undefined || !('start' in last) || last.start + last.length <= bytes;
  }

  /** The contents of the files. May be called once. @throws MicrovmError */
  async *stream(signal: AbortSignal): AsyncGenerator<Buffer> {
    for (const batch of batchesOf(this.#files)) yield* this.#readBatch(batch, signal);
  }

  async *#readBatch(batch: readonly FileRange[], signal: AbortSignal): AsyncGenerator<Buffer> {
    let left = batch;
    for (let failures = 0; left.length > 0; ) {
      left = left.filter(({ file }) => isUsable(this.#readingOf(file).status));
      const progress = { done: 0, bytes: 0 };
      try {
        yield* this.#readRanges(left, progress, signal);
        return;
      } catch (error) {
        const isBroken = error instanceof MicrovmError && error.code === 'guest_unreachable';
        const isProgress = progress.done > 0 || progress.bytes > 0;
        failures = isProgress ? 0 : failures + 1;
        if (!isBroken || failures >= ATTEMPTS) throw error;
      }
      left = left.slice(progress.done).map((range, index) => {
        const skipped = index === 0 ? progress.bytes : 0;
        return { ...range, offset: range.offset + skipped, length: range.length - skipped };
      });
    }
  }

  async *#readRanges(
    ranges: readonly FileRange[],
    progress: { done: number; bytes: number },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    for await (const piece of this.#tree.read(ranges, signal)) {
      const range = ranges[piece.range];
      if (range === undefined) throw new RangeError('the answer has more ranges than the request');
      this.#begin(range.file);
      const reading = this.#readingOf(range.file);
      if ('status' in piece) {
        // Less than was asked for cannot be complete, whatever the guest says.
        const isShort = isUsable(piece.status) && progress.bytes < range.length;
        this.#settle(reading, isShort ? 'changed' : piece.status);
        progress.done += 1;
        progress.bytes = 0;
      } else if (Buffer.isBuffer(piece.content)) {
        this.#add(reading, { start: this.#position, length: piece.content.length });
        this.#position += piece.content.length;
        progress.bytes += piece.content.length;
        yield piece.content;
      } else {
        this.#add(reading, piece.content);
        progress.bytes += piece.content.hole;
      }
    }
  }

  /** Files are read one after the other. */
  #begin(file: TreeEntry): void {
    if (file === this.#current) return;
    if (this.#current !== undefined) this.#finished.add(this.#current);
    this.#current = file;
  }

  #readingOf(file: TreeEntry): Reading {
    const found = this.#readings.get(file);
    if (found !== undefined) return found;
    const reading: Reading = { status: 'complete', pieces: [] };
    this.#readings.set(file, reading);
    return reading;
  }

  #settle(reading: Reading, status: TreeRangeStatus): void {
    if (!isUsable(reading.status) || status === 'complete') return;
    reading.status = status;
    if (!isUsable(status)) reading.pieces.length = 0;
  }

  #add(reading: Reading, piece: StreamPiece): void {
    if (!isUsable(reading.status)) return;
    const last = reading.pieces.at(-1);
    if (last !== undefined && 'hole' in last && 'hole' in piece) {
      reading.pieces[reading.pieces.length - 1] = { hole: last.hole + piece.hole };
      return;
    }
    if (
      last !== undefined &&
      'start' in last &&
      'start' in piece &&
      last.start + last.length === piece.start
    ) {
      const length = last.length + piece.length;
      reading.pieces[reading.pieces.length - 1] = { start: last.start, length };
      return;
    }
    this.#pieces += 1;
    if (reading.pieces.length >= LIMITS.workspaceFileExtents || this.#pieces > MAX_PIECES) {
      this.#settle(reading, 'refused');
      return;
    }
    reading.pieces.push(piece);
  }
}

interface FileRange extends TreeRange {
  readonly file: TreeEntry;
}

/** Whether the content of a range may be used. */
function isUsable(status: TreeRangeStatus): boolean {
  return status === 'complete' || status === 'open';
}

/** Groups ranges into requests. A large file has several ranges. */
function* batchesOf(files: readonly TreeEntry[]): Generator<readonly FileRange[]> {
  let batch: FileRange[] = [];
  let [bytes, pathBytes] = [0, 0];
  for (const file of files) {
    for (let offset = 0; offset < file.size; offset += RANGE_BYTES) {
      const length = Math.min(RANGE_BYTES, file.size - offset);
      batch.push({ file, offset, length });
      bytes += length;
      pathBytes += file.path.length;
      const isFull = bytes >= RANGE_BYTES || pathBytes >= BATCH_PATH_BYTES;
      if (batch.length < TREE_BATCH && !isFull) continue;
      yield batch;
      batch = [];
      [bytes, pathBytes] = [0, 0];
    }
  }
  if (batch.length > 0) yield batch;
}
