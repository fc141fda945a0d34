import { type FileHandle, open, readFile } from 'node:fs/promises';
import type { ForwardedFrame } from '@svc/contract';
import { writeFileAtomic } from '@svc/service-kit';
import { type Budget, type Charge, Mutex } from '@svc/service-kit/concurrency';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { bufferCharge } from './link-budgets.ts';

export interface OutboxEntry {
  readonly c: number;
  readonly frame: ForwardedFrame;
}

/** A frame as it is kept: as JSON, which is never much larger than what the client sent. */
interface StoredEntry {
  readonly c: number;
  readonly json: Buffer;
}

const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** A larger file is rewritten without the frames that the guest has received. */
const COMPACT_BYTES = 1024 * 1024;
/** At most what a line has besides its frame. */
const LINE_BYTES = 64;

/** A line of the file. One without a frame holds the last number that was assigned. */
const storedLine = Compile(
  Type.Object({ c: Type.Integer({ minimum: 0 }), frame: Type.Optional(Type.Unknown()) }),
);

/**
 * Clients' frames for the agent, numbered from 1. Each is written to disk before it is sent and kept until the guest
 * has received it, so that neither a broken connection nor a killed worker loses one.
 */
export class Outbox {
  readonly #path: string;
  /** Keeps the order of the frames that wait until the guest runs. */
  readonly #adds = new Mutex();
  readonly #writes = new Mutex();
  readonly #charge: Charge;
  #waiting: StoredEntry[] = [];
  #waitingBytes = 0;
  /** Frames that wait for the guest or are being written. */
  #writing = 0;
  #writingBytes = 0;
  #fileBytes = 0;
  #lastC = 0;
  #file: FileHandle | undefined;

  private constructor(path: string, held: Budget) {
    this.#path = path;
    this.#charge = bufferCharge(held);
  }

  /**
   * Opens the outbox at `path`, including the frames that an earlier process left in it.
   * @param held for what the links to all guests of the account hold, in bytes
   */
  static async open(path: string, held: Budget): Promise<Outbox> {
    const left = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    const outbox = new Outbox(path, held);
    for (const line of left.split('\n')) outbox.#restore(line);
    await outbox.#rewrite();
    // Last: after a failure, nobody would give this back.
    outbox.#recharge();
    return outbox;
  }

  /** The frames after number `c` that the guest has not confirmed, in order. */
  after(c: number): Iterable<OutboxEntry> {
    return entriesOf(this.#waiting.filter((entry) => entry.c > c));
  }

  /**
   * Stores a frame once the guest is ready, in the order of the calls; undefined when the outbox is full, its account has no
   * room, or the guest does not become ready. `ready` must not reject, and settle soon.
   */
  async add(
    frame: ForwardedFrame,
    ready: Promise<boolean> = Promise.resolve(true),
  ): Promise<OutboxEntry | undefined> {
    const json = Buffer.from(JSON.stringify(frame));
    // Before the waits, since the frames that wait are held as well.
    this.#writing += 1;
    this.#writingBytes += sizeOf(json);
    try {
      if (!this.#recharge() || this.#isOverfull) return undefined;
      return await this.#adds.run(async () => {
        if (!(await ready)) return undefined;
        return { c: await this.#writes.run(() => this.#append(json)), frame };
      });
    } finally {
      this.#writing -= 1;
      this.#writingBytes -= sizeOf(json);
      this.#recharge();
    }
  }

  /** Drops the frames up to `c`, which the guest has received. */
  received(c: number): void {
    const left = this.#waiting.filter((entry) => entry.c > c);
    this.#waiting = left;
    this.#waitingBytes = left.reduce((sum, { json }) => sum + sizeOf(json), 0);
    this.#recharge();
  }

  /** Rewrites the file without received frames, if it is large and mostly consists of them. */
  compact(): Promise<void> {
    return this.#writes.run(async () => {
      if (
        this.#file !== undefined &&
        this.#fileBytes > COMPACT_BYTES &&
        this.#waitingBytes < this.#fileBytes / 2
      ) {
        await this.#rewrite();
      }
    });
  }

  async close(): Promise<void> {
    await this.#writes.run(async () => {
      await this.#file?.close();
      this.#file = undefined;
      this.#waiting = [];
      this.#waitingBytes = 0;
      this.#recharge();
    });
  }

  get #bytes(): number {
    return this.#waitingBytes + this.#writingBytes;
  }

  get #isOverfull(): boolean {
    return this.#waiting.length + this.#writing > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES;
  }

  /** Charges what the outbox holds; tells whether the account has room for it. */
  #recharge(): boolean {
    return this.#charge.set(this.#bytes);
  }

  /** Writes a frame, and returns its number. */
  async #append(json: Buffer): Promise<number> {
    if (this.#file === undefined) throw new Error('the outbox is closed');
    const entry = { c: this.#lastC + 1, json };
    const line = lineOf(entry);
    await this.#file.appendFile(line);
    this.#fileBytes += line.length;
    this.#lastC = entry.c;
    this.#keep(entry);
    return entry.c;
  }

  #restore(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      // The process was killed while it wrote this line, before it sent the frame.
      if (error instanceof SyntaxError) return;
      throw error;
    }
    if (!storedLine.Check(value)) return;
    this.#lastC = Math.max(this.#lastC, value.c);
    if (value.frame === undefined) return;
    this.#keep({ c: value.c, json: Buffer.from(JSON.stringify(value.frame)) });
  }

  #keep(entry: StoredEntry): void {
    this.#waiting.push(entry);
    this.#waitingBytes += sizeOf(entry.json);
  }

  async #rewrite(): Promise<void> {
    const last = Buffer.from(`${JSON.stringify({ c: this.#lastC })}\n`);
    const bytes = Buffer.concat([last, ...this.#waiting.map(lineOf)]);
    // Atomic: after a torn write, a number could be assigned twice.
    await writeFileAtomic(this.#path, bytes, { durable: false });
    await this.#file?.close();
    this.#file = await open(this.#path, 'a', 0o600);
    this.#fileBytes = bytes.length;
  }
}

/** Parses one at a time, since a parsed frame can take many times its bytes. */
function* entriesOf(stored: readonly StoredEntry[]): Generator<OutboxEntry> {
  for (const { c, json } of stored) yield { c, frame: JSON.parse(json.toString()) };
}

function sizeOf(json: Buffer): number {
  return json.length + LINE_BYTES;
}

function lineOf({ c, json }: StoredEntry): Buffer {
  return Buffer.concat([Buffer.from(`{"c":${c},"frame":`), json, Buffer.from('}\n')]);
}
