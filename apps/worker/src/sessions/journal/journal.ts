import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { LIMITS } from '@svc/contract';
import { Mutex } from '@svc/service-kit/concurrency';
import { type Clock, timestamp } from '../../clock.ts';
import {
  type Numbering,
  readCommitted,
  readNumbering,
  readTaskRunning,
  writeCommitted,
  writeNumbering,
  writeTaskRunning,
} from './directory.ts';
import { type NewFrame, runsTask, type StoredFrame, serializeFrame } from './format.ts';
import { FrameNumbers } from './frame-numbers.ts';
import { chunksOf, parseHistory } from './history.ts';
import { SegmentedLog } from './segmented-log.ts';

export interface JournalOptions {
  readonly directory: string;
  readonly clock: Clock;
  /** The size of the newest frames that are kept, in bytes. Default: the limit of a session's history. */
  readonly maxBytes?: number;
  /** The size of a segment, in bytes. Default: a sixteenth of `maxBytes`. */
  readonly segmentBytes?: number;
  /**
   * Reserves numbers beyond `after` for this numberer, and returns the highest reserved one. Default: every number is
   * free to use, as in a journal that no other one continues.
   */
  readonly reserve?: (numberer: string, after: number, signal: AbortSignal) => Promise<number>;
}

/** The frames that a journal continues. */
export interface EarlierFrames {
  /** One a line. */
  readonly frames: string;
  /** The highest number that may have been used: the first frame of the journal gets the next one. */
  readonly lastSeq: number;
  /** The reservation made for this journal. */
  readonly numbering?: Numbering;
}

/**
 * The frames of one start of a session, on disk before a client sees them. Numbers are reserved before they are used,
 * consecutive, higher than any that an earlier start may have used, and survive a killed process. Size is bounded.
 */
export class Journal {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #segmentBytes: number;
  readonly #log: SegmentedLog;
  readonly #writes = new Mutex();
  readonly #reserve: JournalOptions['reserve'];
  #numbers: FrameNumbers | undefined;
  #lastSeq = 0;
  #lastN = 0;
  #taskRunning = false;
  /** As recorded on disk. */
  #recordedRunning = false;
  #versions: ReadonlyMap<string, number> = new Map();
  #committedSeq = 0;
  #closed = false;

  private constructor({ directory, clock, ...options }: JournalOptions) {
    const maxBytes = options.maxBytes ?? LIMITS.sessionHistoryBytes;
    this.#directory = directory;
    this.#clock = clock;
    this.#segmentBytes = options.segmentBytes ?? Math.ceil(maxBytes / 16);
    this.#reserve = options.reserve;
    this.#log = new SegmentedLog({ directory, maxBytes, segmentBytes: this.#segmentBytes });
  }

  /** Creates a journal, and deletes any earlier one in the directory. */
  static async create(options: JournalOptions, history: EarlierFrames): Promise<Journal> {
    const journal = new Journal(options);
    await rm(options.directory, { recursive: true, force: true });
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    for (const chunk of chunksOf(parseHistory(history.frames), journal.#segmentBytes)) {
      await journal.#log.append(chunk.map((frame) => ({ n: 0, ...frame })));
    }
    journal.#lastSeq = Math.max(journal.#log.lastSeq, history.lastSeq);
    await journal.noteCommitted(journal.#lastSeq);
    if (history.numbering !== undefined) {
      await writeNumbering(options.directory, history.numbering);
      journal.#use(history.numbering);
    }
    return journal;
  }

  /** Opens the journal that an earlier process left, or an empty one. */
  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    const { lastN, taskRunning, versions } = await journal.#log.scan();
    journal.#lastN = lastN;
    journal.#recordedRunning = await readTaskRunning(options.directory);
    journal.#taskRunning = taskRunning ?? journal.#recordedRunning;
    journal.#versions = versions;
    journal.#committedSeq = await readCommitted(options.directory);
    journal.#lastSeq = Math.max(journal.#log.lastSeq, journal.#committedSeq);
    // An older version of the worker left none.
    journal.#use(
      (await readNumbering(options.directory)) ?? { numberer: randomUUID(), reserved: 0 },
    );
    return journal;
  }

  /** The number of the oldest frame that can still be read; `lastSeq + 1` when there is none. */
  get firstSeq(): number {
    return this.#log.firstSeq ?? this.#lastSeq + 1;
  }

  /** The highest number assigned. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The number of the newest frame, or 0: lower than `lastSeq` where the numbers jump. */
  get newestSeq(): number {
    return this.#log.lastSeq;
  }

  /** The highest number of a guest's message in the journal. */
  get lastN(): number {
    return this.#lastN;
  }

  /** Whether a task of the guest is running, as its frames say. */
  get taskRunning(): boolean {
    return this.#taskRunning;
  }

  /** Identifies the numberer of this journal's frames to the control plane; undefined without reservations. */
  get numberer(): string | undefined {
    return this.#numbers?.numberer;
  }

  /** The newest version of each bundle in the `config_update` frames that the journal held when it was opened. */
  get versions(): ReadonlyMap<string, number> {
    return this.#versions;
  }

  /** The control plane has committed every frame up to this number. */
  get committedSeq(): number {
    return this.#committedSeq;
  }

  /** About the size of the frames that are not committed, in bytes: at most a segment too much. */
  get uncommittedBytes(): number {
    return this.#log.bytesFrom(this.#committedSeq + 1);
  }

  /**
   * Numbers frames and writes them, then calls `show` with them, before any later frame is written. Rejects, having
   * stored none, when they cannot be written, or no numbers can be reserved for them.
   */
  append(
    frames: readonly NewFrame[],
    show: (frames: readonly StoredFrame[]) => void,
  ): Promise<void> {
    return this.#writes.run(async () => {
      if (this.#closed) throw new Error('the journal is closed');
      // First, because a failure after the write would be taken for one of the write.
      await this.#trim();
      await this.#numbers?.use(this.#lastSeq + frames.length);
      const ts = timestamp(this.#clock.wall());
      const records = frames.map(({ n, frame }, index) => {
        const seq = this.#lastSeq + 1 + index;
        const jumps = index === 0 && this.#log.lastSeq !== this.#lastSeq;
        const number = jumps ? { seq, previousSeq: this.#log.lastSeq } : { seq };
        return { n, seq, text: serializeFrame(frame, number, ts) };
      });
      await this.#log.append(records);
      this.#lastSeq += records.length;
      for (const { n, frame } of frames) {
        this.#lastN = Math.max(this.#lastN, n);
        this.#taskRunning = runsTask(n, frame.type) ?? this.#taskRunning;
      }
      show(records);
    });
  }

  /**
   * Some frames from `seq` on, in order, at least one if there is any. They begin later when frame `seq` has been
   * dropped.
   */
  read(seq: number): Promise<StoredFrame[]> {
    return this.#log.read(seq);
  }

  /** Records, for a restart too, that the control plane has committed every frame up to `seq`. */
  async noteCommitted(seq: number): Promise<void> {
    this.#committedSeq = Math.max(this.#committedSeq, seq);
    if (this.#closed) return;
    await writeCommitted(this.#directory, this.#committedSeq);
  }

  /** Closes the journal and leaves its files on disk. */
  close(): Promise<void> {
    const reserving = this.#numbers?.close();
    return this.#writes.run(async () => {
      this.#closed = true;
      await reserving;
      await this.#log.close();
    });
  }

  /** Closes and deletes the journal. */
  async remove(): Promise<void> {
    await this.close();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Drops the oldest frames, which may include the start of a running task. */
  async #trim(): Promise<void> {
    if (!this.#log.isOverfull) return;
    if (this.#recordedRunning !== this.#taskRunning) {
      await writeTaskRunning(this.#directory, this.#taskRunning);
      this.#recordedRunning = this.#taskRunning;
    }
    await this.#log.trim();
  }

  #use({ numberer, reserved }: Numbering): void {
    const reserve = this.#reserve;
    if (reserve === undefined) return;
    this.#numbers = new FrameNumbers({
      directory: this.#directory,
      numberer,
      reserved,
      reserve: (after, signal) => reserve(numberer, after, signal),
    });
  }
}
