import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkIdOf, DamagedChunkError, openChunk, sealChunk } from './chunk-codec.ts';
import { deriveChunkKeys } from './chunk-keys.ts';
import { CHUNK_SIZES } from './chunker.ts';

const keys = deriveChunkKeys(Buffer.alloc(32, 1));
const others = deriveChunkKeys(Buffer.alloc(32, 2));
const sealed = async (plain: Uint8Array) => {
  const id = chunkIdOf(plain, keys);
  return { id, bytes: await sealChunk(plain, id, keys) };
};

describe('a sealed chunk', () => {
  it('opens to the same bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5_000 }), async (plain) => {
        const { id, bytes } = await sealed(plain);
        expect((await openChunk(bytes, id, keys)).equals(plain)).toBe(true);
      }),
    );
    const largest = Buffer.alloc(CHUNK_SIZES.max, 'a');
    const { id, bytes } = await sealed(largest);
    expect((await openChunk(bytes, id, keys)).equals(largest)).toBe(true);
  });

  it('is smaller than what compresses, and hardly larger than what does not', async () => {
    expect((await sealed(Buffer.alloc(100_000, 'tar '))).bytes.length).toBeLessThan(1_000);
    expect((await sealed(randomBytes(100_000))).bytes.length).toBeLessThan(100_064);
  });

  it('differs each time, while its id stays', async () => {
    const plain = Buffer.from('the same');
    const [one, two] = [await sealed(plain), await sealed(plain)];
    expect(one.id).toBe(two.id);
    expect(one.bytes.equals(two.bytes)).toBe(false);
    expect(one.id).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(chunkIdOf(plain, others)).not.toBe(one.id);
  });

  it('does not open when any bit of it has changed, or bytes are missing', async () => {
    const { id, bytes } = await sealed(Buffer.from('what an agent wrote'));
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length * 8 - 1), async (bit) => {
        const changed = Buffer.from(bytes);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        await expect(openChunk(changed, id, keys)).rejects.toThrow(DamagedChunkError);
      }),
    );
    for (const length of [0, 12, bytes.length - 1]) {
      await expect(openChunk(bytes.subarray(0, length), id, keys)).rejects.toThrow(
        DamagedChunkError,
      );
    }
  });

  it('does not open under another id or with another secret', async () => {
    const [one, two] = [await sealed(Buffer.from('one')), await sealed(Buffer.from('two'))];
    await expect(openChunk(one.bytes, two.id, keys)).rejects.toThrow(DamagedChunkError);
    await expect(openChunk(one.bytes, one.id, others)).rejects.toThrow(DamagedChunkError);
  });

  it('does not open when its content was sealed under an id that is not its own', async () => {
    const { id } = await sealed(Buffer.from('one'));
    const forged = await sealChunk(Buffer.from('two'), id, keys);
    await expect(openChunk(forged, id, keys)).rejects.toThrow(DamagedChunkError);
  });
});
