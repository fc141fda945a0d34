import { type FileHandle, open, readFile } from 'node:fs/promises';
import type { ClientFrame } from '@svc/contract';
import { writeFileAtomic } from '@svc/service-kit';
import { Mutex } from '@svc/service-kit/concurrency';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/** A client's frame for the agent. */
export type ForwardedFrame = Exclude<ClientFrame, { type: 'ping' }>;

export interface OutboxEntry {
  readonly c: number;
  readonly frame: ForwardedFrame;
}

const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Beyond this, what has been received is taken out of the file. */
const COMPACT_BYTES = 1024 * 1024;

/** A line of the file; one without a frame says what number stood last. */
const storedLine = Compile(
  Type.Object({ c: Type.Integer({ minimum: 0 }), frame: Type.Optional(Type.Unknown()) }),
);

/**
 * Clients' frames on their way to the agent: on disk before they are sent, so that neither a lost line nor a
 * killed worker loses one, and kept until the guest has them. Numbered from 1.
 */
export class Outbox {
  readonly #path: string;
  readonly #turns = new Mutex();
  #waiting: { readonly c: number; readonly frame: ForwardedFrame; readonly bytes: number }[] = [];
  #waitingBytes = 0;
  #fileBytes = 0;
  #lastC = 0;
  #file: FileHandle | undefined;

  private constructor(path: string) {
    this.#path = path;
  }

  /** Opens the outbox at `path`, with what an earlier process left in it. */
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

  /** Everything that the guest has not said it has received, in order. */
  get waiting(): readonly OutboxEntry[] {
    return this.#waiting.map(({ c, frame }) => ({ c, frame }));
  }

  /** Keeps a frame; undefined, and nothing kept, when too many wait already. */
  add(frame: ForwardedFrame): Promise<OutboxEntry | undefined> {
    return this.#turns.run(async () => {
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

  /** The guest has everything up to `c`. */
  received(c: number): void {
    const left = this.#waiting.filter((entry) => entry.c > c);
    this.#waiting = left;
    this.#waitingBytes = left.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Takes out of the file what has been received, when it is worth it. */
  compact(): Promise<void> {
    return this.#turns.run(async () => {
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
    await this.#turns.run(async () => {
      await this.#file?.close();
      this.#file = undefined;
    });
  }

  #restore(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      // The last line of a killed process; its frame was never sent.
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
    // Whole or not at all: a number that was given out may not be given out again.
    await writeFileAtomic(this.#path, bytes, { durable: false });
    await this.#file?.close();
    this.#file = await open(this.#path, 'a', 0o600);
    this.#fileBytes = bytes.length;
  }
}
