import type { OutputStream } from '@svc/microvm';
import type { ByteBudget } from './byte-budget.ts';
import { OutputDecoder } from './output-decoder.ts';

/**
 * Limits the text of a command's output to a number of UTF-8 bytes. Drops everything after the limit, without cutting a
 * character.
 */
class OutputLimit {
  readonly #text = new OutputDecoder();
  #left: number;
  #truncated = false;

  constructor(limitBytes: number) {
    this.#left = limitBytes;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  /** The part of this chunk's text to keep. */
  add(stream: OutputStream, chunk: Uint8Array): string {
    return this.#truncated ? '' : this.#keep(this.#text.add(stream, chunk));
  }

  /** The part to keep of the text still in the decoder. */
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

/** Collects the output of a command, up to a limit and within a budget shared with other commands. */
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

  /** The collected text, stdout and stderr in order of arrival. */
  finish(): string {
    this.#store(this.#limit.end('stdout'));
    this.#store(this.#limit.end('stderr'));
    return Buffer.concat(this.#parts).toString('utf8');
  }

  /** Returns the memory to the budget. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
    this.#parts.length = 0;
  }

  #store(text: string): void {
    if (text === '' || this.#full) return;
    // Kept as bytes, which are outside the heap of the engine and half the size of most strings.
    const encoded = Buffer.from(text);
    const granted = this.#budget.take(encoded.length);
    const kept = wholeCharacters(encoded, granted);
    this.#budget.give(granted - kept);
    this.#full = kept < encoded.length;
    this.#bytes += kept;
    this.#parts.push(encoded.subarray(0, kept));
  }
}

/** Length of the longest prefix of `bytes`, at most `limit`, that does not cut a UTF-8 character. */
export function wholeCharacters(bytes: Uint8Array, limit: number): number {
  if (limit >= bytes.length) return bytes.length;
  let end = Math.max(0, limit);
  // A character has at most three continuation bytes. A longer run is not UTF-8 and may be cut anywhere.
  for (let back = 0; back < 4 && end > 0 && isContinuation(bytes[end]); back += 1) end -= 1;
  return isContinuation(bytes[end]) ? Math.max(0, limit) : end;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
