import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deriveChunkKeys } from './chunk-keys.ts';
import { CHUNK_SIZES, type ChunkSizes, cutIntoChunks } from './chunker.ts';

const MIB = 1024 * 1024;
const { gear } = deriveChunkKeys(Buffer.alloc(32, 1));
const SMALL: ChunkSizes = { min: 64, average: 256, max: 1024 };

async function* inPieces(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const length of lengths) {
    yield bytes.subarray(at, at + length);
    at += length;
  }
  yield bytes.subarray(at);
}
async function cut(
  bytes: Buffer,
  sizes: ChunkSizes,
  lengths: readonly number[] = [],
  table = gear,
): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of cutIntoChunks(inPieces(bytes, lengths), table, sizes)) {
    chunks.push(chunk);
  }
  return chunks;
}
const digests = (chunks: readonly Buffer[]) =>
  chunks.map((chunk) => createHash('sha256').update(chunk).digest('hex'));

/** Bytes that are random, repetitive, or both. */
const contents = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 3_000 }),
      fc.tuple(fc.nat(255), fc.nat(3_000)).map(([byte, length]) => Buffer.alloc(length, byte)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => Buffer.concat(parts));

describe('chunks', () => {
  it('are the whole content, each within the bounds', async () => {
    await fc.assert(
      fc.asyncProperty(contents, async (bytes) => {
        const chunks = await cut(bytes, SMALL);
        expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
        const lengths = chunks.map((chunk) => chunk.length);
        expect(Math.max(0, ...lengths)).toBeLessThanOrEqual(SMALL.max);
        for (const length of lengths.slice(0, -1)) expect(length).toBeGreaterThanOrEqual(SMALL.min);
        expect(lengths).not.toContain(0);
      }),
    );
  });

  it('do not depend on how the content arrives', async () => {
    await fc.assert(
      fc.asyncProperty(contents, fc.array(fc.nat(700)), async (bytes, lengths) => {
        expect(await cut(bytes, SMALL, lengths)).toEqual(await cut(bytes, SMALL));
      }),
    );
  });

  it('have about the average size, and stay the same around a change', async () => {
    const before = randomBytes(12 * MIB);
    const inserted = Buffer.concat([
      before.subarray(0, 5 * MIB),
      Buffer.from('x'),
      before.subarray(5 * MIB),
    ]);
    const [chunks, changed] = [await cut(before, CHUNK_SIZES), await cut(inserted, CHUNK_SIZES)];
    const average = before.length / chunks.length;
    expect(average).toBeGreaterThan(CHUNK_SIZES.average / 2);
    expect(average).toBeLessThan(CHUNK_SIZES.average * 2);
    const known = new Set(digests(chunks));
    expect(digests(changed).filter((digest) => !known.has(digest)).length).toBeLessThanOrEqual(3);
  });

  it('end at other places under another secret', async () => {
    const bytes = randomBytes(64 * 1024);
    const other = deriveChunkKeys(Buffer.alloc(32, 2)).gear;
    const [ones, others] = [await cut(bytes, SMALL), await cut(bytes, SMALL, [], other)];
    expect(ones.map(({ length }) => length)).not.toEqual(others.map(({ length }) => length));
  });
});
