import type { WorkspaceExtent } from '@svc/contract';
import type { StoredChunk } from '../chunks/chunk-store.ts';

/** A piece of a file: bytes of the stream that is stored, or a hole. */
export type StreamPiece =
  | { readonly start: number; readonly length: number }
  | { readonly hole: number };

/** Tells in which chunks the pieces of a stored stream are. */
export class ExtentFinder {
  readonly #chunks: readonly StoredChunk[];
  /** Where each chunk begins in the stream. */
  readonly #starts: readonly number[];

  constructor(chunks: readonly StoredChunk[]) {
    let start = 0;
    this.#chunks = chunks;
    this.#starts = chunks.map(({ length }) => {
      start += length;
      return start - length;
    });
  }

  /** The extents of a file, whose pieces are given in order. */
  extentsOf(pieces: readonly StreamPiece[]): WorkspaceExtent[] {
    return pieces.flatMap((piece) =>
      'hole' in piece ? [{ length: piece.hole }] : this.#find(piece.start, piece.length),
    );
  }

  #find(start: number, length: number): WorkspaceExtent[] {
    const found: WorkspaceExtent[] = [];
    let [at, left] = [start, length];
    for (let index = this.#indexOf(start); left > 0; index += 1) {
      const chunk = this.#chunks[index];
      if (chunk === undefined) throw new RangeError('the stream has no such piece');
      const offset = at - (this.#starts[index] ?? 0);
      const taken = Math.min(left, chunk.length - offset);
      found.push({ id: chunk.id, ...(offset === 0 ? {} : { offset }), length: taken });
      at += taken;
      left -= taken;
    }
    return found;
  }

  /** The chunk that contains this place of the stream. */
  #indexOf(place: number): number {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
