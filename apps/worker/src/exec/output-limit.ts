import type { OutputStream } from '@svc/microvm';
import type { ByteBudget } from './byte-budget.ts';
import { OutputText } from './output-text.ts';
import { wholeCharacters } from './utf8.ts';

/**
 * The text of a command's output up to a limit of UTF-8 bytes. What comes after the limit is dropped
 * while the command goes on; a character is never cut.
 */
export class OutputLimit {
  readonly #text = new OutputText();
  #left: number;
  #truncated = false;

  constructor(limitBytes: number) {
    this.#left = limitBytes;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  /** The text to keep of this chunk. */
  add(stream: OutputStream, chunk: Uint8Array): string {
    return this.#truncated ? '' : this.#keep(this.#text.add(stream, chunk));
  }

  /** The text to keep of what the decoder still holds. */
  end(stream: OutputStream): string {
    return this.#truncated ? '' : this.#keep(this.#text.end(stream));
  }

  #keep(text: string): string {
    const bytes = Buffer.byteLength(text);
    if (bytes <= this.#left) {
      this.#left -= bytes;
      return text;
    }
    this.#truncated = true;
    const encoded = Buffer.from(text);
    return encoded.toString('utf8', 0, wholeCharacters(encoded, this.#left));
  }
}

/** Collects the kept output of a command that is answered as a whole, within a budget shared with others. */
export class OutputCollector {
  readonly #limit: OutputLimit;
  readonly #budget: ByteBudget;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #full = false;

  constructor(limitBytes: number, budget: ByteBudget) {
    this.#limit = new OutputLimit(limitBytes);
    this.#budget = budget;
  }

  get truncated(): boolean {
    return this.#full || this.#limit.truncated;
  }

  add(stream: OutputStream, chunk: Uint8Array): void {
    this.#store(this.#limit.add(stream, chunk));
  }

  /** All that was kept, stdout and stderr in the order they came. */
  finish(): string {
    this.#store(this.#limit.end('stdout'));
    this.#store(this.#limit.end('stderr'));
    return Buffer.concat(this.#parts).toString('utf8');
  }

  /** Gives the memory back to the budget. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
    this.#parts.length = 0;
  }

  #store(text: string): void {
    if (text === '' || this.#full) return;
    // Kept as bytes: outside the heap of the engine, and half the size of most strings.
    const encoded = Buffer.from(text);
    const granted = this.#budget.take(encoded.length);
    const kept = wholeCharacters(encoded, granted);
    this.#budget.give(granted - kept);
    this.#full = kept < encoded.length;
    this.#bytes += kept;
    this.#parts.push(encoded.subarray(0, kept));
  }
}
