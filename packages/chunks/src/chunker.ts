import { LIMITS } from '@svc/contract';

/** The sizes of chunks in bytes. Only the last chunk may be smaller than `min`. */
export interface ChunkSizes {
  readonly min: number;
  /** A power of two. */
  readonly average: number;
  readonly max: number;
}

export const CHUNK_SIZES: ChunkSizes = {
  min: LIMITS.chunkMinBytes,
  average: 256 * 1024,
  max: LIMITS.chunkBytes,
};

/** Before the average, this many more bits must be zero for a cut, and after it as many fewer: FastCDC's normalization. */
const NORMALIZATION = 2;
const WORD_BITS = 32;

/**
 * Cuts a stream into chunks at places that its content determines (FastCDC with a gear hash), so that a change affects
 * only the chunks around it. The same bytes are cut in the same places, however they arrive. Holds at most one chunk.
 * @param gear 256 random words; see {@link ChunkKeys}
 */
export async function* cutIntoChunks(
  source: AsyncIterable<Uint8Array>,
  gear: Int32Array,
  sizes: ChunkSizes = CHUNK_SIZES,
): AsyncGenerator<Buffer> {
  const cutter = new Cutter(gear, sizes);
  for await (const bytes of source) yield* cutter.add(bytes);
  const rest = cutter.rest();
  if (rest.length > 0) yield rest;
}

class Cutter {
  readonly #gear: Int32Array;
  readonly #sizes: ChunkSizes;
  readonly #strict: number;
  readonly #lax: number;
  readonly #buffer: Buffer;
  /** The number of bytes of the current chunk, all of which are in the buffer. */
  #length = 0;
  #hash = 0;

  constructor(gear: Int32Array, sizes: ChunkSizes) {
    const bits = Math.log2(sizes.average);
    this.#gear = gear;
    this.#sizes = sizes;
    this.#strict = highBits(bits + NORMALIZATION);
    this.#lax = highBits(bits - NORMALIZATION);
    this.#buffer = Buffer.alloc(sizes.max);
  }

  *add(bytes: Uint8Array): Generator<Buffer> {
    for (let at = 0; at < bytes.length; ) {
      const taken = this.#take(bytes, at);
      this.#buffer.set(bytes.subarray(at, at + taken.bytes), this.#length);
      this.#length += taken.bytes;
      at += taken.bytes;
      if (taken.isCut) yield this.rest();
    }
  }

  /** The current chunk, after which a new one begins. */
  rest(): Buffer {
    const chunk = Buffer.from(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
    this.#hash = 0;
    return chunk;
  }

  /** How many of the bytes from `start` belong to the current chunk, and whether it ends there. */
  #take(bytes: Uint8Array, start: number): { bytes: number; isCut: boolean } {
    const { min, average, max } = this.#sizes;
    // Positions in `bytes` of the places in the chunk; the hash covers the last 32 bytes, so those before are not read.
    const place = (length: number) => start + length - this.#length;
    const end = Math.min(bytes.length, place(max));
    const cut =
      this.#scan(
        bytes,
        Math.max(start, place(min - WORD_BITS)),
        Math.min(end, place(min - 1)),
        0,
      ) ??
      this.#scan(
        bytes,
        Math.max(start, place(min - 1)),
        Math.min(end, place(average)),
        this.#strict,
      ) ??
      this.#scan(bytes, Math.max(start, place(average)), end, this.#lax);
    return { bytes: (cut ?? end) - start, isCut: cut !== undefined || end === place(max) };
  }

  /** Continues the hash over these bytes. Returns where it first fits the mask; a mask of 0 fits nowhere. */
  #scan(bytes: Uint8Array, start: number, end: number, mask: number): number | undefined {
    const gear = this.#gear;
    let hash = this.#hash;
    for (let at = start; at < end; at += 1) {
      hash = ((hash << 1) + (gear[bytes[at] as number] as number)) | 0;
      if ((hash & mask) === 0 && mask !== 0) {
        this.#hash = hash;
        return at + 1;
      }
    }
    this.#hash = hash;
    return undefined;
  }
}

/** A mask of the highest bits, which depend on most bytes. */
function highBits(count: number): number {
  return -1 << (WORD_BITS - count);
}
