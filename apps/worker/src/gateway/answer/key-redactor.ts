const MASK = 0x2a;
/** A shorter key would also be found where it is none. */
const MIN_BYTES = 8;

/**
 * Masks a key in bytes that come in pieces; the length stays. Only what may be the beginning of the key is held back,
 * until the next piece shows whether it is.
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

  /** What can be passed on; may be empty. */
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

  /** What is still held back, when nothing comes any more. */
  end(): Buffer {
    return this.#held;
  }
}

/** A text without the key. */
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

/** How many bytes at the end are the beginning of `pattern`. */
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
