/** Content as encrypted chunks under keyed digests: where chunks end, what they are called, and how they are sealed. */

export { chunkIdOf, DamagedChunkError, openChunk, sealChunk } from './chunk-codec.ts';
export { type ChunkKeys, deriveChunkKeys } from './chunk-keys.ts';
export { CHUNK_SIZES, type ChunkSizes, cutIntoChunks } from './chunker.ts';
