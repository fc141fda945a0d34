import { type FoundValue, ValueCapture } from './value-capture.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Deepest level of nesting at which keys are examined. */
const MAX_LEVEL = 3;
const MAX_KEY_BYTES = 256;
/** A UTF-16 code unit that is escaped. */
const UNIT = /\\u([0-9a-f]{4})/gi;

/**
 * Finds the values of a few members in JSON that arrives in chunks, in linear time and constant memory, since the JSON is
 * untrusted. Input that is not JSON never makes it fail; the values then found are arbitrary.
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
  #capture: ValueCapture | undefined;

  constructor(wanted: readonly string[], onValue: (found: FoundValue) => void) {
    this.#wanted = new Set(wanted);
    this.#onValue = onValue;
  }

  /** Starts a new document. */
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
    this.#capture?.add(chunk, chunk.length, this.#offset);
    this.#offset += chunk.length;
  }

  /** Reads a string up to its end, or that of the chunk. Returns the offset of the next byte. */
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
    this.#capture = new ValueCapture(path, this.#level);
  }

  #startValue(at: number): void {
    this.#capture?.begin(this.#offset + at);
  }

  #endValue(chunk: Buffer, at: number): void {
    const capture = this.#capture;
    if (capture === undefined || capture.level !== this.#level) return;
    capture.add(chunk, at, this.#offset);
    this.#capture = undefined;
    const found = capture.finish(this.#offset + at);
    if (found !== undefined) this.#onValue(found);
  }
}

/**
 * Decodes a key from its bytes after the opening quote, including the closing one. No wanted key needs an escape other than
 * that of a UTF-16 code unit, so the others stay as they are. `JSON.parse` takes ten times as long when it throws.
 */
function decodeKey(bytes: Buffer): string {
  const text = bytes.toString('utf8', 0, bytes.length - 1);
  return text.replace(UNIT, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
