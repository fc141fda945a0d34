import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { LIMITS } from '@svc/contract';
import { Mutex } from '@svc/service-kit/concurrency';
import { type Clock, timestamp } from '../../clock.ts';
import { readCommitted, writeCommitted } from './committed.ts';
import { lineOf, type NewFrame, type StoredFrame, textOf } from './format.ts';
import { framesOf, portionsOf } from './history.ts';
import { firstOf, newSegment, readSegment, type Segment, scanSegment } from './segment.ts';

export interface JournalOptions {
  readonly directory: string;
  readonly clock: Clock;
  /** Kept at least; the oldest frames beyond it go first. Default: what a session's history may hold. */
  readonly maxBytes?: number;
  /** Default: a sixteenth of `maxBytes`. */
  readonly segmentBytes?: number;
}

/**
 * The frames of one start of a session, on disk before anybody sees them: readable after the process was
 * killed, bounded, numbered without gaps. Numbers go on from where the session stood.
 */
export class Journal {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #segmentBytes: number;
  readonly #turns = new Mutex();
  #segments: Segment[] = [];
  #file: FileHandle | undefined;
  #lastSeq = 0;
  #lastN = 0;
  #taskRuns = false;
  #committedSeq = 0;
  #closed = false;
  #onKept: (frames: readonly StoredFrame[]) => void = () => undefined;

  private constructor(options: JournalOptions) {
    this.#directory = options.directory;
    this.#clock = options.clock;
    this.#maxBytes = options.maxBytes ?? LIMITS.sessionHistoryBytes;
    this.#segmentBytes = options.segmentBytes ?? Math.ceil(this.#maxBytes / 16);
  }

  /**
   * Begins a journal in place of any that stood there. `history`: earlier frames of the session, one a line,
   * and the highest number it has given out.
   */
  static async create(
    options: JournalOptions,
    history: { readonly frames: string; readonly lastSeq: number },
  ): Promise<Journal> {
    const journal = new Journal(options);
    await rm(options.directory, { recursive: true, force: true });
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    for (const portion of portionsOf(framesOf(history.frames), journal.#segmentBytes)) {
      await journal.#write(portion.map((frame) => ({ n: 0, ...frame })));
    }
    journal.#lastSeq = Math.max(journal.#lastSeq, history.lastSeq);
    await journal.noteCommitted(journal.#lastSeq);
    return journal;
  }

  /** Takes up the journal that an earlier process left; an empty one where there is none. */
  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const names = await readdir(options.directory);
    const firsts = names.map(firstOf).filter((first) => first !== undefined);
    for (const first of firsts.sort((a, b) => a - b)) {
      const { segment, lastN, taskRuns } = await scanSegment(options.directory, first);
      journal.#segments.push(segment);
      journal.#lastN = Math.max(journal.#lastN, lastN);
      journal.#taskRuns = taskRuns ?? journal.#taskRuns;
      journal.#lastSeq = segment.first + segment.count - 1;
    }
    journal.#committedSeq = await readCommitted(options.directory);
    journal.#lastSeq = Math.max(journal.#lastSeq, journal.#committedSeq);
    return journal;
  }

  /** Called with frames at the moment they are kept, in order; they can be shown from then on. */
  set onKept(listener: (frames: readonly StoredFrame[]) => void) {
    this.#onKept = listener;
  }

  /** Of the oldest frame that can still be read; `lastSeq + 1` when there is none. */
  get firstSeq(): number {
    const oldest = this.#segments.find(({ count }) => count > 0);
    return oldest?.first ?? this.#lastSeq + 1;
  }

  /** The highest number given out. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The highest number of a guest's message in it. */
  get lastN(): number {
    return this.#lastN;
  }

  /** Whether a task had started and not ended when the journal was opened. */
  get taskRuns(): boolean {
    return this.#taskRuns;
  }

  /** Everything up to here is the control plane's by now. */
  get committedSeq(): number {
    return this.#committedSeq;
  }

  /** Numbers frames and writes them; when it settles they have been given to {@link onKept}. All or none. */
  append(frames: readonly NewFrame[]): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#closed) throw new Error('the journal is closed');
      const ts = timestamp(this.#clock.wall());
      const kept = frames.map(({ n, frame }, index) => {
        const seq = this.#lastSeq + 1 + index;
        return { n, seq, text: textOf(frame, seq, ts) };
      });
      await this.#write(kept);
      for (const { n } of frames) this.#lastN = Math.max(this.#lastN, n);
      this.#onKept(kept);
      await this.#trim();
    });
  }

  /**
   * Some frames from `seq` on, in order, at least one if there is any. They begin later when the frame of that
   * number is no longer kept.
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
        // Dropped for its age in the meantime.
        if (this.#segments.includes(segment)) throw error;
      }
    }
  }

  /** Notes for a restart that everything up to `seq` is committed. */
  async noteCommitted(seq: number): Promise<void> {
    this.#committedSeq = Math.max(this.#committedSeq, seq);
    if (this.#closed) return;
    await writeCommitted(this.#directory, this.#committedSeq);
  }

  /** Closes the files; everything stays on disk. */
  close(): Promise<void> {
    return this.#turns.run(async () => {
      this.#closed = true;
      await this.#file?.close();
      this.#file = undefined;
    });
  }

  /** Closes and deletes it. */
  async remove(): Promise<void> {
    await this.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #write(kept: readonly { n: number; seq: number; text: string }[]): Promise<void> {
    const [first] = kept;
    if (first === undefined) return;
    const segment = await this.#segmentFor(first.seq);
    const bytes = Buffer.from(kept.map(({ n, text }) => lineOf(n, text)).join(''));
    this.#file ??= await open(segment.path, 'a', 0o600);
    try {
      await this.#file.appendFile(bytes);
    } catch (error) {
      // Half a line would damage what is written next.
      await this.#file.truncate(segment.bytes);
      throw error;
    }
    segment.count += kept.length;
    segment.bytes += bytes.length;
    this.#lastSeq = kept.at(-1)?.seq ?? this.#lastSeq;
  }

  async #segmentFor(seq: number): Promise<Segment> {
    const current = this.#segments.at(-1);
    const follows = current !== undefined && current.first + current.count === seq;
    if (current !== undefined && follows && current.bytes < this.#segmentBytes) return current;
    await this.#file?.close();
    this.#file = undefined;
    const next = newSegment(this.#directory, seq);
    this.#segments.push(next);
    return next;
  }

  async #trim(): Promise<void> {
    let total = this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
    while (this.#segments.length > 1) {
      const [oldest] = this.#segments;
      if (oldest === undefined || total - oldest.bytes < this.#maxBytes) return;
      total -= oldest.bytes;
      this.#segments = this.#segments.slice(1);
      await rm(oldest.path, { force: true });
    }
  }
}
