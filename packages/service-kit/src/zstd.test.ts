import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import { expect, test } from 'vitest';
import { packZstd, unpackZstd } from './zstd.ts';

const MIB = 1024 * 1024;
const CONTENTS = {
  empty: Buffer.alloc(0),
  short: Buffer.from('a'),
  repetitive: Buffer.alloc(3 * MIB, 'all work and no play '),
  random: randomBytes(3 * MIB),
};

test.each(Object.entries(CONTENTS))('%s content is unchanged', async (_name, content) => {
  const frame = await packZstd(content);
  const maxBytes = content.length;
  expect((await unpackZstd(frame, { maxBytes: Math.max(maxBytes, 1) })).equals(content)).toBe(true);
  const pieces = { maxBytes: maxBytes + 1, pieceBytes: 1_000 };
  expect((await unpackZstd(frame, pieces)).equals(content)).toBe(true);
});

test.each(Object.entries(CONTENTS))(
  '%s content gives the frame that the library makes piece by piece',
  async (_name, content) => {
    const params = { [constants.ZSTD_c_compressionLevel]: 3 };
    const frame = await promisify(zstdCompress)(content, { params });
    expect((await packZstd(content)).equals(frame)).toBe(true);
  },
);

test('content that is larger than allowed is refused, and so is what is no frame', async () => {
  const frame = await packZstd(CONTENTS.repetitive);
  await expect(unpackZstd(frame, { maxBytes: 3 * MIB - 1 })).rejects.toThrow('larger than');
  await expect(unpackZstd(CONTENTS.random, { maxBytes: MIB })).rejects.toThrow();
});
