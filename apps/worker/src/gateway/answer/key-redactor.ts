import { PatternMask } from './pattern-mask.ts';

/** Shorter keys are not masked, since they would match unrelated text. */
const MIN_BYTES = 8;

/**
 * Masks a key in a stream of chunks, without changing its length. Holds back only bytes that may be the beginning of the
 * key, until the next chunk decides.
 */
export class KeyRedactor {
  readonly #masks: readonly PatternMask[];

  constructor(key: string) {
    const spellings = new Set([key, JSON.stringify(key).slice(1, -1)]);
    this.#masks = [...spellings]
      .map((spelling) => Buffer.from(spelling))
      .filter((pattern) => pattern.length >= MIN_BYTES)
      .map((pattern) => new PatternMask(pattern));
  }

  /** The bytes that can be sent on; may be empty. */
  push(chunk: Buffer): Buffer {
    return this.#masks.reduce((bytes, mask) => mask.push(bytes), chunk);
  }

  /** The bytes still held back at the end of the stream. */
  end(): Buffer {
    return this.#masks.reduce(
      (bytes, mask) => Buffer.concat([mask.push(bytes), mask.end()]),
      Buffer.alloc(0),
    );
  }
}

/** Masks the key in a text. */
export function withoutKey(text: string, key: string): string {
  if (text.length < key.length) return text;
  const redactor = new KeyRedactor(key);
  return Buffer.concat([redactor.push(Buffer.from(text)), redactor.end()]).toString();
}
