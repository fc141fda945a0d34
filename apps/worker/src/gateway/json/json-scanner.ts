/** The value of a member that was looked for. */
export interface FoundValue {
  /** Keys from the top, joined by dots; `[]` stands for the elements of a list. */
  readonly path: string;
  /** Where the value stands among all bytes since the start or the last reset. */
  readonly start: number;
  readonly end: number;
  /** Undefined when it is longer than what is kept. */
  readonly text: string | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Keys deeper than this are not looked at. */
const MAX_LEVEL = 3;
const MAX_KEY_BYTES = 256;
const MAX_VALUE_BYTES = 64 * 1024;

interface Capture {
  readonly path: string;
  readonly level: number;
  start: number;
  readonly parts: Buffer[];
  bytes: number;
}

/**
 * Finds the values of a few members in JSON that comes in pieces, with memory that does not grow with it: whoever
 * wrote the JSON decides neither what is held nor for how long the process is busy. Of what is no JSON it makes
 * something or other, but never fails.
 */
export class JsonScanner {
  readonly #wanted: ReadonlySet<string>;
  readonly #onValue: (found: FoundValue) => void;
  readonly #keys: string[] = [];
  readonly #isObject: boolean[] = [];
  #offset = 0;
  #level = 0;
  #inString = false;
  #escaped = false;
  #expectsKey = false;
  #key: Buffer[] | undefined;
  #keyBytes = 0;
  #capture: Capture | undefined;

  constructor(wanted: readonly string[], onValue: (found: FoundValue) => void) {
    this.#wanted = new Set(wanted);
    this.#onValue = onValue;
  }

  /** Starts anew, with the next document. */
  reset(): void {
    this.#offset = 0;
    this.#level = 0;
    this.#inString = false;
    this.#escaped = false;
    this.#expectsKey = false;
    this.#key = undefined;
    this.#capture = undefined;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#readString(chunk, at);
      } else {
        this.#readByte(chunk, at);
        at += 1;
      }
    }
    this.#keep(chunk, chunk.length);
    this.#offset += chunk.length;
  }

  /** Goes on inside a string, up to its end or that of the chunk. */
  #readString(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length) {
      const byte = chunk[at];
      at += 1;
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        break;
      }
    }
    if (this.#key !== undefined) {
      const piece = chunk.subarray(from, at);
      this.#keyBytes += piece.length;
      if (this.#keyBytes <= MAX_KEY_BYTES) this.#key.push(Buffer.from(piece));
      if (!this.#inString) this.#endKey(this.#key);
    }
    return at;
  }

  #readByte(chunk: Buffer, at: number): void {
    switch (chunk[at]) {
      case QUOTE:
        this.#inString = true;
        if (this.#expectsKey) {
          this.#expectsKey = false;
          this.#key = [];
          this.#keyBytes = 0;
        } else this.#startValue(at);
        break;
      case OPEN_OBJECT:
      case OPEN_LIST:
        this.#startValue(at);
        this.#open(chunk[at] === OPEN_OBJECT);
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        this.#endValue(chunk, at);
        this.#level = Math.max(0, this.#level - 1);
        this.#expectsKey = false;
        break;
      case COMMA:
        this.#endValue(chunk, at);
        this.#expectsKey = this.#level <= MAX_LEVEL && this.#isObject[this.#level] === true;
        break;
      case COLON:
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        break;
      default:
        this.#startValue(at);
    }
  }

  #open(isObject: boolean): void {
    this.#level += 1;
    if (this.#level > MAX_LEVEL) return;
    this.#isObject[this.#level] = isObject;
    this.#keys[this.#level] = '[]';
    this.#expectsKey = isObject;
  }

  #endKey(pieces: readonly Buffer[]): void {
    this.#key = undefined;
    const name = this.#keyBytes <= MAX_KEY_BYTES ? decodeKey(Buffer.concat(pieces)) : '';
    this.#keys[this.#level] = name;
    const path = this.#keys.slice(1, this.#level + 1).join('.');
    if (this.#capture !== undefined || !this.#wanted.has(path)) return;
    this.#capture = { path, level: this.#level, start: -1, parts: [], bytes: 0 };
  }

  #startValue(at: number): void {
    if (this.#capture?.start === -1) this.#capture.start = this.#offset + at;
  }

  #endValue(chunk: Buffer, at: number): void {
    const capture = this.#capture;
    if (capture === undefined || capture.level !== this.#level) return;
    this.#keep(chunk, at);
    this.#capture = undefined;
    if (capture.start === -1) return;
    const isWhole = capture.bytes <= MAX_VALUE_BYTES;
    this.#onValue({
      path: capture.path,
      start: capture.start,
      end: this.#offset + at,
      text: isWhole ? Buffer.concat(capture.parts).toString().trim() : undefined,
    });
  }

  /** Keeps what of the chunk, up to `end`, belongs to the value that is being captured. */
  #keep(chunk: Buffer, end: number): void {
    const capture = this.#capture;
    if (capture === undefined || capture.start === -1) return;
    const piece = chunk.subarray(Math.max(0, capture.start - this.#offset), end);
    capture.bytes += piece.length;
    // A copy: a piece of it must not keep the whole chunk.
    if (capture.bytes <= MAX_VALUE_BYTES) capture.parts.push(Buffer.from(piece));
  }
}

/** A key from what stands between its quotes, the closing one with it; one that cannot be read has no name. */
function decodeKey(bytes: Buffer): string {
  try {
    return String(JSON.parse(`"${bytes.toString()}`));
  } catch {
    return '';
  }
}
