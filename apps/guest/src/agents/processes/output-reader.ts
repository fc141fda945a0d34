import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** A process that has ended may have left others behind that hold its output open: how long they are listened to. */
const SILENCE_MS = 200;
const AFTERWARDS_MS = 2_000;

/**
 * Reads one output of a process until it ends, or, once told that the process has ended, until it falls silent.
 * What its reader needs to take it does not count as silence.
 */
export class OutputReader {
  readonly #stream: Readable;
  readonly #take: (text: string) => void | Promise<void>;
  #silence: NodeJS.Timeout | undefined;
  #taking = false;
  /** Milliseconds of listening that are left once the process has ended. */
  #left: number | undefined;
  #listeningSince = 0;

  constructor(stream: Readable, take: (text: string) => void | Promise<void>) {
    this.#stream = stream;
    this.#take = take;
  }

  /** Settles when all is read. Rejects with what the reader throws. */
  async read(): Promise<void> {
    const decoder = new StringDecoder('utf8');
    try {
      for await (const chunk of this.#stream) {
        this.#pause();
        const text = decoder.write(chunk);
        if (text !== '') await this.#take(text);
        this.#listen();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    } finally {
      clearTimeout(this.#silence);
    }
    const rest = decoder.end();
    if (rest !== '') await this.#take(rest);
  }

  /** The process has ended. */
  finish(): void {
    this.#left = AFTERWARDS_MS;
    if (!this.#taking) this.#listen();
  }

  #pause(): void {
    this.#taking = true;
    clearTimeout(this.#silence);
    if (this.#left !== undefined && this.#listeningSince > 0) {
      this.#left -= performance.now() - this.#listeningSince;
    }
  }

  #listen(): void {
    this.#taking = false;
    if (this.#left === undefined) return;
    if (this.#left <= 0) {
      this.#stream.destroy();
      return;
    }
    this.#listeningSince = performance.now();
    this.#silence = setTimeout(() => this.#endIfSilent(), SILENCE_MS);
  }

  /** A busy process sees its timers before what came in meanwhile: one look at the input goes first. */
  #endIfSilent(): void {
    setImmediate(() => {
      if (!this.#taking && this.#stream.readableLength === 0) this.#stream.destroy();
    });
  }
}
