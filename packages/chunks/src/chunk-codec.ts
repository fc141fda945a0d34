import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { packZstd, unpackZstd } from '@svc/service-kit/zstd';
import type { ChunkKeys } from './chunk-keys.ts';
import { CHUNK_SIZES } from './chunker.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT_BYTES = 1;
/** The first byte of a sealed chunk, which says what the encrypted bytes are. */
const FORMAT = { plain: 1, zstd: 2 } as const;

/** A stored chunk is not what it should be: it was changed, cut off or exchanged. */
export class DamagedChunkError extends Error {
  override readonly name = 'DamagedChunkError';
}

/** The id of a chunk: a keyed digest of its content, as 43 characters of base64url. */
export function chunkIdOf(plain: Uint8Array, keys: Pick<ChunkKeys, 'id'>): string {
  return createHmac('sha256', keys.id).update(plain).digest('base64url');
}

/**
 * Compresses a chunk where that makes it smaller, and encrypts it with AES-256-GCM. The result is bound to the id. It
 * differs each time, because the nonce is random: at 2³² chunks of one key, nonces may begin to repeat.
 */
export async function sealChunk(
  plain: Uint8Array,
  id: string,
  keys: Pick<ChunkKeys, 'seal'>,
): Promise<Buffer> {
  const packed = await packZstd(plain);
  const isSmaller = packed.length < plain.length;
  const format = Buffer.of(isSmaller ? FORMAT.zstd : FORMAT.plain);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keys.seal, nonce);
  cipher.setAAD(contextOf(format, id));
  const sealed = [cipher.update(isSmaller ? packed : plain), cipher.final()];
  return Buffer.concat([format, nonce, ...sealed, cipher.getAuthTag()]);
}

/** The content of a sealed chunk. @throws DamagedChunkError unless it is exactly the chunk with this id */
export async function openChunk(
  sealed: Buffer,
  id: string,
  keys: Pick<ChunkKeys, 'id' | 'seal'>,
): Promise<Buffer> {
  try {
    const { format, bytes } = decrypt(sealed, id, keys);
    const plain =
      format === FORMAT.zstd
        ? await unpackZstd(bytes, { maxBytes: CHUNK_SIZES.max, pieceBytes: CHUNK_SIZES.min })
        : bytes;
    if (chunkIdOf(plain, keys) !== id) throw new Error('its content has another id');
    return plain;
  } catch (cause) {
    throw new DamagedChunkError(`The stored chunk ${id} is damaged.`, { cause });
  }
}

function decrypt(sealed: Buffer, id: string, keys: Pick<ChunkKeys, 'seal'>) {
  const start = FORMAT_BYTES + NONCE_BYTES;
  if (sealed.length < start + TAG_BYTES) throw new Error('it is cut off');
  const format = sealed.subarray(0, FORMAT_BYTES);
  const nonce = sealed.subarray(FORMAT_BYTES, start);
  const decipher = createDecipheriv(ALGORITHM, keys.seal, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(contextOf(format, id));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const bytes = [decipher.update(sealed.subarray(start, -TAG_BYTES)), decipher.final()];
  return { format: sealed[0], bytes: Buffer.concat(bytes) };
}

function contextOf(format: Buffer, id: string): Buffer {
  return Buffer.concat([format, Buffer.from(id)]);
}
