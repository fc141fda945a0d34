const MASK = 0x2a;

/**
 * Masks a pattern in a stream of chunks, without changing its length. Takes linear time (Knuth, Morris, Pratt), since the
 * pattern and the stream may have been made for each other.
 */
export class PatternMask {
  readonly #pattern: Buffer;
  /** For each length of a prefix of the pattern, that of the longest shorter prefix that it ends with. */
  readonly #borders: Uint32Array;
  /** Number of bytes at the end of the stream that are a prefix of the pattern. They are held back. */
  #matched = 0;

  /** The pattern must not be empty. */
  constructor(pattern: Buffer) {
    this.#pattern = pattern;
    this.#borders = new Uint32Array(pattern.length + 1);
    for (let at = 1, matched = 0; at < pattern.length; at += 1) {
      matched = next(pattern, this.#borders, matched, pattern[at]);
      this.#borders[at + 1] = matched;
    }
  }

  /** The bytes that can be sent on; may be empty. */
  push(chunk: Buffer): Buffer {
    const held = this.#matched;
    const ends = this.#search(chunk);
    if (held === 0 && ends.length === 0) return chunk.subarray(0, chunk.length - this.#matched);
    const bytes = Buffer.allocUnsafe(held + chunk.length - this.#matched);
    this.#pattern.copy(bytes, 0, 0, held);
    if (held < bytes.length) chunk.copy(bytes, held);
    for (const end of ends) bytes.fill(MASK, held + end - this.#pattern.length, held + end);
    return bytes;
  }

  /** The bytes still held back at the end of the stream. */
  end(): Buffer {
    return this.#pattern.subarray(0, this.#matched);
  }

  /** The offsets in the chunk at which occurrences end. */
  #search(chunk: Buffer): number[] {
    const ends: number[] = [];
    let matched = this.#matched;
    for (let at = 0; at < chunk.length; at += 1) {
      matched = next(this.#pattern, this.#borders, matched, chunk[at]);
      if (matched < this.#pattern.length) continue;
      ends.push(at + 1);
      matched = 0;
    }
    this.#matched = matched;
    return ends;
  }
}

/** The length of the longest prefix of the pattern at the end of the stream, after another byte of it. */
function next(
  pattern: Buffer,
  borders: Uint32Array,
  matched: number,
  byte: number | undefined,
): number {
  let length = matched;
  while (length > 0 && pattern[length] !== byte) length = borders[length] ?? 0;
  return pattern[length] === byte ? length + 1 : 0;
}
