/** Buffers that belong together, and their bytes in all: never 0. */
export interface Piece {
  readonly parts: readonly Buffer[];
  readonly size: number;
}

/** Gathers small buffers into pieces of at least `least` bytes, but for the last; copies nothing. */
export async function* inPieces(
  source: AsyncIterable<Buffer>,
  least: number,
): AsyncGenerator<Piece> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const buffer of source) {
    if (buffer.length === 0) continue;
    parts.push(buffer);
    size += buffer.length;
    if (size < least) continue;
    yield { parts, size };
    parts = [];
    size = 0;
  }
  if (size > 0) yield { parts, size };
}
