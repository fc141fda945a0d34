import { GrowingBuffer } from '@svc/service-kit/streams';

/** The value of a member that was searched for. */
export interface FoundValue {
  /** Keys from the root, joined by dots; `[]` stands for the elements of an array. */
  readonly path: string;
  /** Byte offsets of the value since the start of the document. */
  readonly start: number;
  readonly end: number;
  /** Undefined when the value is longer than the capture's bound. */
  readonly text: string | undefined;
}

const MAX_VALUE_BYTES = 64 * 1024;

/** Collects the bytes of one value from consecutive chunks, up to a bound. */
export class ValueCapture {
  readonly path: string;
  /** Nesting depth of the object that contains the value. */
  readonly level: number;
  readonly #text = new GrowingBuffer(MAX_VALUE_BYTES);
  #start: number | undefined;
  #isWhole = true;

  constructor(path: string, level: number) {
    this.path = path;
    this.level = level;
  }

  /** To be called at the first byte of the value; later calls have no effect. */
  begin(offset: number): void {
    this.#start ??= offset;
  }

  /** Keeps the bytes of the value in `chunk`, up to `end`. `offset` is that of the chunk in the document. */
  add(chunk: Buffer, end: number, offset: number): void {
    if (this.#start === undefined) return;
    const piece = chunk.subarray(Math.max(0, this.#start - offset), end);
    this.#isWhole &&= this.#text.append(piece);
  }

  /** The value, which ends at this offset; undefined if it never began. */
  finish(end: number): FoundValue | undefined {
    if (this.#start === undefined) return undefined;
    return {
      path: this.path,
      start: this.#start,
      end,
      text: this.#isWhole ? this.#text.take().toString().trim() : undefined,
    };
  }
}
