import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type ChunkKeys, deriveChunkKeys, openChunk } from '@svc/chunks';
import {
  type GetOptions,
  locateRange,
  type ObjectStore,
  type StoredObject,
} from '@svc/object-store';
import { openDeadline } from '@svc/service-kit/concurrency';
import type { Extent, Store } from '@svc/store';
import { chunkTextOf } from '../chunks/chunk-ids.ts';
import type { ChunkOwner } from '../chunks/stored-chunks.ts';
import type { ObjectSource } from '../objects/send-object.ts';

/** Pieces that are read ahead. With the largest chunks, this is the memory of a download in MiB. */
const PIECES_AHEAD = 4;
/** For one chunk. */
const CHUNK_MS = 60_000;
const ZEROS = Buffer.alloc(64 * 1024);

export interface ChunkedContentsParts {
  readonly store: Pick<Store, 'workspaces' | 'workspaceChunks'>;
  readonly objects: Pick<ObjectStore, 'get'>;
  /** The secret of a workspace's chunks. */
  readonly secretOf: (owner: ChunkOwner) => Promise<Buffer>;
}

/** A file whose content is in chunks. */
export interface ChunkedFile {
  readonly tenantId: string;
  readonly workspaceId: string;
  readonly contentId: string;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
}

/** A part of an extent. */
interface Piece {
  readonly chunkId: Buffer | undefined;
  readonly offset: number;
  readonly length: number;
}

/**
 * Reads files from their chunks, in whole or in ranges, in bounded memory. Chunks are verified: a damaged one ends the
 * body with an error.
 */
export class ChunkedContents {
  readonly #parts: ChunkedContentsParts;

  constructor(parts: ChunkedContentsParts) {
    this.#parts = parts;
  }

  /** A file as if it were an object. */
  source(file: ChunkedFile): ObjectSource {
    return {
      get: (options) => this.#open(file, options),
      size: async () => file.sizeBytes,
    };
  }

  /** @throws ObjectStoreError `object_range_invalid` */
  async #open(file: ChunkedFile, { range, signal }: GetOptions): Promise<StoredObject> {
    const { workspaceId, contentId, sizeBytes, modifiedAt } = file;
    const { first, length } = locateRange(range, sizeBytes);
    const extents = await this.#parts.store.workspaces.findExtents(workspaceId, contentId);
    const secret = await this.#parts.secretOf({ tenantId: file.tenantId, id: workspaceId });
    const pieces = cut(extents, first, length);
    const body = Readable.from(this.#read(workspaceId, pieces, deriveChunkKeys(secret), signal), {
      objectMode: false,
    });
    return { key: contentId, size: sizeBytes, modifiedAt, etag: contentId, first, length, body };
  }

  async *#read(
    workspaceId: string,
    pieces: Iterable<Piece>,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    // Ends what is read ahead when the reader stops.
    const stopped = new AbortController();
    const limit = AbortSignal.any([signal, stopped.signal]);
    const ahead: { piece: Piece; chunk: Promise<Buffer> | undefined }[] = [];
    const next = pieces[Symbol.iterator]();
    const readAhead = () => {
      const { value: piece, done } = next.next();
      if (done) return;
      const before = ahead.at(-1);
      // Small files share chunks, and so do pieces of one file.
      const isSame = piece.chunkId !== undefined && before?.piece.chunkId?.equals(piece.chunkId);
      const chunk = isSame ? before?.chunk : this.#chunk(workspaceId, piece, keys, limit);
      // It is awaited in its turn.
      chunk?.catch(() => undefined);
      ahead.push({ piece, chunk });
    };
    try {
      for (let count = 0; count < PIECES_AHEAD; count += 1) readAhead();
      for (let entry = ahead.shift(); entry !== undefined; entry = ahead.shift()) {
        const { piece, chunk } = entry;
        if (chunk === undefined) yield* zeros(piece.length);
        else yield partOf(await chunk, piece);
        readAhead();
      }
    } finally {
      stopped.abort();
    }
  }

  #chunk(
    workspaceId: string,
    { chunkId }: Piece,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): Promise<Buffer> | undefined {
    return chunkId && this.#fetch(workspaceId, chunkId, keys, signal);
  }

  async #fetch(
    workspaceId: string,
    chunkId: Buffer,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { store, objects } = this.#parts;
    using deadline = openDeadline(signal, CHUNK_MS);
    const [stored] = await store.workspaceChunks.find(workspaceId, [chunkId]);
    const id = chunkTextOf(chunkId);
    if (stored === undefined) throw new Error(`The chunk ${id} is not stored.`);
    const { body } = await objects.get(stored.objectKey, { signal: deadline.signal });
    return openChunk(await buffer(body), id, keys);
  }
}

/** The pieces with `length` bytes from `first`. */
function* cut(extents: readonly Extent[], first: number, length: number): Generator<Piece> {
  let start = 0;
  for (const { chunkId, offset, length: bytes } of extents) {
    const from = Math.max(first, start);
    const to = Math.min(first + length, start + bytes);
    if (from < to) yield { chunkId, offset: offset + from - start, length: to - from };
    start += bytes;
  }
}

function partOf(chunk: Buffer, { offset, length }: Piece): Buffer {
  const part = chunk.subarray(offset, offset + length);
  if (part.length !== length) throw new Error('An extent exceeds its chunk.');
  return part;
}

function* zeros(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= ZEROS.length) yield ZEROS.subarray(0, left);
}
