import { type FileHandle, open, readFile } from 'node:fs/promises';
import type { ForwardedFrame } from '@svc/contract';
import { writeFileAtomic } from '@svc/service-kit';
import { Mutex } from '@svc/service-kit/concurrency';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

export interface OutboxEntry {
  readonly c: number;
  readonly frame: ForwardedFrame;
}

const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** A larger file is rewritten without the frames that the guest has received. */
const COMPACT_BYTES = 1024 * 1024;

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
  readonly #writes = new Mutex();
  #waiting: { readonly c: number; readonly frame: ForwardedFrame; readonly bytes: number }[] = [];
  #waitingBytes = 0;
  #fileBytes = 0;
  #lastC = 0;
  #file: FileHandle | undefined;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Opens the outbox at `path`, including the frames that an earlier process left in it. */
  static async open(path: string): Promise<Outbox> {
    const left = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    const outbox = new Outbox(path);
    for (const line of left.split('\n')) outbox.#restore(line);
    await outbox.#rewrite();
    return outbox;
  }

  /** The frames that the guest has not confirmed, in order. */
  get waiting(): readonly OutboxEntry[] {
    return this.#waiting.map(({ c, frame }) => ({ c, frame }));
  }

  /** Stores a frame; undefined when the outbox is full. */
  add(frame: ForwardedFrame): Promise<OutboxEntry | undefined> {
    return this.#writes.run(async () => {
      const entry: OutboxEntry = { c: this.#lastC + 1, frame };
      const line = `${JSON.stringify(entry)}\n`;
      const bytes = Buffer.byteLength(line);
      if (this.#waiting.length >= MAX_WAITING) return undefined;
      if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) return undefined;
      if (this.#file === undefined) throw new Error('the outbox is closed');
      await this.#file.appendFile(line);
      this.#fileBytes += bytes;
      this.#lastC = entry.c;
      this.#waitingBytes += bytes;
      this.#waiting.push({ ...entry, bytes });
      return entry;
    });
  }

  /** Drops the frames up to `c`, which the guest has received. */
  received(c: number): void {
    const left = this.#waiting.filter((entry) => entry.c > c);
    this.#waiting = left;
    this.#waitingBytes = left.reduce((sum, { bytes }) => sum + bytes, 0);
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
    });
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
    const bytes = Buffer.byteLength(line) + 1;
    this.#waitingBytes += bytes;
    this.#waiting.push({ c: value.c, frame: value.frame as ForwardedFrame, bytes });
  }

  async #rewrite(): Promise<void> {
    const entries = this.#waiting.map(({ c, frame }) => ({ c, frame }));
    const lines = [{ c: this.#lastC }, ...entries].map((entry) => `${JSON.stringify(entry)}\n`);
    const bytes = Buffer.from(lines.join(''));
    // Atomic: after a torn write, a number could be assigned twice.
    await writeFileAtomic(this.#path, bytes, { durable: false });
    await this.#file?.close();
    this.#file = await open(this.#path, 'a', 0o600);
    this.#fileBytes = bytes.length;
  }
}
