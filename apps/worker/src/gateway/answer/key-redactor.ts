const MASK = 0x2a;
/** Shorter keys are not masked, since they would match unrelated text. */
const MIN_BYTES = 8;

/**
 * Masks a key in a stream of chunks, without changing its length. Holds back only bytes that may be the beginning of the
 * key, until the next chunk decides.
 */
export class KeyRedactor {
  readonly #patterns: readonly Buffer[];
  #held: Buffer = Buffer.alloc(0);

  constructor(key: string) {
    const spellings = new Set([key, JSON.stringify(key).slice(1, -1)]);
    this.#patterns = [...spellings]
      .map((spelling) => Buffer.from(spelling))
      .filter((pattern) => pattern.length >= MIN_BYTES);
  }

  /** The bytes that can be sent on; may be empty. */
  push(chunk: Buffer): Buffer {
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    let open = 0;
    for (const pattern of this.#patterns) {
      bytes = masked(bytes, pattern);
      open = Math.max(open, openBytes(bytes, pattern));
    }
    this.#held = open === 0 ? Buffer.alloc(0) : Buffer.from(bytes.subarray(bytes.length - open));
    return open === 0 ? bytes : bytes.subarray(0, bytes.length - open);
  }

  /** The bytes still held back at the end of the stream. */
  end(): Buffer {
    return this.#held;
  }
}

/** Masks the key in a text. */
export function withoutKey(text: string, key: string): string {
  return key.length < MIN_BYTES ? text : text.replaceAll(key, '*'.repeat(key.length));
}

function masked(bytes: Buffer, pattern: Buffer): Buffer {
  let at = bytes.indexOf(pattern);
  if (at === -1) return bytes;
  const copy = Buffer.from(bytes);
  while (at !== -1) {
    copy.fill(MASK, at, at + pattern.length);
    at = copy.indexOf(pattern, at + pattern.length);
  }
  return copy;
}

/** Number of bytes at the end that are a prefix of `pattern`. */
function openBytes(bytes: Buffer, pattern: Buffer): number {
  const first = pattern[0];
  const from = Math.max(0, bytes.length - pattern.length + 1);
  for (let at = from; at < bytes.length; at += 1) {
    if (bytes[at] !== first) continue;
    const rest = bytes.length - at;
    if (bytes.compare(pattern, 0, rest, at) === 0) return rest;
  }
  return 0;
}
