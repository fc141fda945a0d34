import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Background processes can hold the output of an ended process open. Reading stops after such a silence. */
const SILENCE_MS = 200;
/** Reading stops after this time even without silence. */
const AFTER_EXIT_MS = 2_000;

/**
 * Reads one output of a process to its end or, once the process has exited, until the output falls silent. Time that
 * the consumer takes does not count as silence.
 */
export class OutputReader {
  readonly #stream: Readable;
  readonly #consume: (text: string) => void | Promise<void>;
  #silence: NodeJS.Timeout | undefined;
  #consuming = false;
  /** Milliseconds left for reading, once the process has exited. */
  #remainingMs: number | undefined;
  #waitingSince = 0;

  constructor(stream: Readable, consume: (text: string) => void | Promise<void>) {
    this.#stream = stream;
    this.#consume = consume;
  }

  /** Settles when all output is read. Rejects with the error of the consumer. */
  async read(): Promise<void> {
    const decoder = new StringDecoder('utf8');
    try {
      for await (const chunk of this.#stream) {
        this.#pause();
        const text = decoder.write(chunk);
        if (text !== '') await this.#consume(text);
        this.#wait();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    } finally {
      clearTimeout(this.#silence);
    }
    const rest = decoder.end();
    if (rest !== '') await this.#consume(rest);
  }

  /** To be called when the process has exited. */
  processExited(): void {
    this.#remainingMs = AFTER_EXIT_MS;
    if (!this.#consuming) this.#wait();
  }

  #pause(): void {
    this.#consuming = true;
    clearTimeout(this.#silence);
    if (this.#remainingMs !== undefined && this.#waitingSince > 0) {
      this.#remainingMs -= performance.now() - this.#waitingSince;
    }
  }

  #wait(): void {
    this.#consuming = false;
    if (this.#remainingMs === undefined) return;
    if (this.#remainingMs <= 0) {
      this.#stream.destroy();
      return;
    }
    this.#waitingSince = performance.now();
    this.#silence = setTimeout(() => this.#endIfSilent(), SILENCE_MS);
  }

  /** Checks for input first: after a busy turn of the event loop, timers fire before pending input is read. */
  #endIfSilent(): void {
    setImmediate(() => {
      if (!this.#consuming && this.#stream.readableLength === 0) this.#stream.destroy();
    });
  }
}
