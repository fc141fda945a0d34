import { Readable } from 'node:stream';
import type { ExecExitEvent } from '@svc/contract';
import type { Budget } from '@svc/service-kit/concurrency';

export type OutputStream = 'stdout' | 'stderr';

interface Part {
  readonly stream: OutputStream;
  /** Kept as bytes, which are outside the heap of the engine and half the size of most strings. */
  readonly text: Buffer;
}

/** Text of one stream is gathered into parts of about this many characters. */
const PART_CHARS = 64 * 1024;
/** What a part costs in addition to its text. */
const PART_BYTES = 128;
/** JSON is sent in pieces of about this many characters. */
const PIECE_CHARS = 64 * 1024;

/**
 * The output of a command, up to a limit of UTF-8 bytes and within a budget shared with other commands. What exceeds them
 * is dropped, without cutting a character. The budget gets its bytes back at the end of {@link json}, or by `release`.
 */
export class CollectedOutput {
  readonly #budget: Budget;
  readonly #parts: Part[] = [];
  #left: number;
  #held = 0;
  #isFull = false;
  /** Text that has not become a part yet. */
  #last: { readonly stream: OutputStream; text: string } | undefined;

  constructor(limitBytes: number, budget: Budget) {
    this.#left = limitBytes;
    this.#budget = budget;
  }

  add(stream: OutputStream, text: string): void {
    if (this.#isFull || text === '') return;
    if (this.#last?.stream === stream) this.#last.text += text;
    else {
      this.#close();
      this.#last = { stream, text };
    }
    if (this.#last.text.length >= PART_CHARS) this.#close();
  }

  /** The answer to a command that has ended, as JSON. Closing the stream releases the output. */
  json(outcome: ExecExitEvent): Readable {
    this.#close();
    const truncated = this.#isFull || outcome.truncated;
    const body = Readable.from(inPieces(this.#pieces({ ...outcome, truncated })), {
      objectMode: false,
    });
    return body.once('close', () => this.release());
  }

  /** Gives the memory back. Idempotent. */
  release(): void {
    this.#budget.give(this.#held);
    this.#held = 0;
    this.#parts.length = 0;
    this.#last = undefined;
    this.#isFull = true;
  }

  *#pieces(outcome: ExecExitEvent): Generator<string> {
    yield '{"output":"';
    yield* this.#escaped();
    yield '","stdout":"';
    yield* this.#escaped('stdout');
    yield '","stderr":"';
    yield* this.#escaped('stderr');
    yield `",${JSON.stringify(outcome).slice(1)}`;
  }

  *#escaped(only?: OutputStream): Generator<string> {
    for (const { stream, text } of this.#parts) {
      if (only === undefined || only === stream) {
        yield JSON.stringify(text.toString('utf8')).slice(1, -1);
      }
    }
  }

  #close(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last === undefined || this.#isFull) return;
    const encoded = Buffer.from(last.text);
    const granted = this.#budget.take(Math.min(encoded.length, this.#left) + PART_BYTES);
    this.#held += granted;
    const kept = wholeCharacters(encoded, Math.max(0, granted - PART_BYTES));
    this.#left -= kept;
    this.#isFull = kept < encoded.length;
    if (kept > 0) this.#parts.push({ stream: last.stream, text: encoded.subarray(0, kept) });
  }
}

/** Joins small texts, so that each does not cost a write. */
function* inPieces(texts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

/** Length of the longest prefix of `bytes`, at most `limit`, that does not cut a UTF-8 character. */
export function wholeCharacters(bytes: Uint8Array, limit: number): number {
  if (limit >= bytes.length) return bytes.length;
  let end = Math.max(0, limit);
  // A character has at most three continuation bytes. A longer run is not UTF-8 and may be cut anywhere.
  for (let back = 0; back < 3 && end > 0 && isContinuation(bytes[end]); back += 1) end -= 1;
  return isContinuation(bytes[end]) ? Math.max(0, limit) : end;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
