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

/** The output of a command: both streams in order of arrival, and each apart. */
export interface CollectedOutput {
  readonly output: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Collects the output of a command, up to a limit and within a budget shared with other commands. */
export class OutputCollector {
  readonly #limit: OutputLimit;
  readonly #budget: ByteBudget;
  /** In order of arrival. The parts of each stream are the same buffers. */
  readonly #parts: Buffer[] = [];
  readonly #partsOf: Readonly<Record<OutputStream, Buffer[]>> = { stdout: [], stderr: [] };
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
    this.#store(stream, this.#limit.add(stream, chunk));
  }

  /** The collected text. */
  finish(): CollectedOutput {
    this.#store('stdout', this.#limit.end('stdout'));
    this.#store('stderr', this.#limit.end('stderr'));
    const output = textOf(this.#parts);
    const { stdout, stderr } = this.#partsOf;
    // Most commands write to one stream only, whose text need not be held twice.
    return {
      output,
      stdout: stderr.length === 0 ? output : textOf(stdout),
      stderr: stdout.length === 0 ? output : textOf(stderr),
    };
  }

  /** Returns the memory to the budget. */
  release(): void {
    this.#budget.give(this.#bytes);
    this.#bytes = 0;
    for (const parts of [this.#parts, ...Object.values(this.#partsOf)]) parts.length = 0;
  }

  #store(stream: OutputStream, text: string): void {
    if (text === '' || this.#full) return;
    // Kept as bytes, which are outside the heap of the engine and half the size of most strings.
    const encoded = Buffer.from(text);
    const granted = this.#budget.take(encoded.length);
    const kept = wholeCharacters(encoded, granted);
    this.#budget.give(granted - kept);
    this.#full = kept < encoded.length;
    this.#bytes += kept;
    const part = encoded.subarray(0, kept);
    this.#parts.push(part);
    this.#partsOf[stream].push(part);
  }
}

function textOf(parts: readonly Buffer[]): string {
  return Buffer.concat(parts).toString('utf8');
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
