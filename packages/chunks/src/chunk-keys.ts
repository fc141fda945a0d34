import { hkdfSync } from 'node:crypto';

const SECRET_BYTES = 32;
const KEY_BYTES = 32;
const GEAR_ENTRIES = 256;

/** The keys for the chunks of one owner, derived from one secret. */
export interface ChunkKeys {
  /** Keys the ids, so that an id reveals nothing about its chunk without it. */
  readonly id: Buffer;
  /** Encrypts the chunks. */
  readonly seal: Buffer;
  /** Decides where chunks end. Secret, so that the sizes of chunks do not reveal known files. */
  readonly gear: Int32Array;
}

/** Derives the keys. The same secret gives the same keys for ever, since stored chunks depend on them. */
export function deriveChunkKeys(secret: Uint8Array): ChunkKeys {
  if (secret.length !== SECRET_BYTES) throw new Error('The secret of chunks has 32 bytes.');
  const derive = (purpose: string, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, '', `svc chunks v1 ${purpose}`, length));
  const table = derive('gear', GEAR_ENTRIES * Int32Array.BYTES_PER_ELEMENT);
  return {
    id: derive('id', KEY_BYTES),
    seal: derive('seal', KEY_BYTES),
    gear: Int32Array.from({ length: GEAR_ENTRIES }, (_, index) => table.readInt32LE(index * 4)),
  };
}
