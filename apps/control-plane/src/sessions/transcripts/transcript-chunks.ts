import { buffer } from 'node:stream/consumers';
import {
  type ChunkKeys,
  chunkIdOf,
  cutIntoChunks,
  DamagedChunkError,
  deriveChunkKeys,
  openChunk,
  sealChunk,
} from '@svc/chunks';
import { isObjectStoreError, type ObjectStore, ObjectStoreError } from '@svc/object-store';
import { openDeadline, Slots, untilAborted } from '@svc/service-kit/concurrency';
import { type Content, isStored, type Store, type StoredContent } from '@svc/store';
import { chunkBytesOf, chunkTextOf } from '../../chunks/chunk-ids.ts';
import type { TenantKeys } from '../../secrets/tenant-keys.ts';
import { newObjectKey } from '../files/object-keys.ts';

/** Chunks that are encrypted and uploaded, or downloaded, at once. They are held in memory. */
const CHUNKS_AT_ONCE = 8;
/** Transcripts that are uploaded at once. */
const UPLOADS_AT_ONCE = 4;
const READ_MS = 20_000;
const CHECK_MS = 5_000;

export interface TranscriptChunksParts {
  readonly store: Pick<Store, 'transcriptChunks' | 'sessionHistory'>;
  readonly objects: Pick<ObjectStore, 'get' | 'head' | 'put'>;
  readonly keys: Pick<TenantKeys, 'derive'>;
}

/** A session and its tenant, whose keys encrypt its transcript. */
export interface TranscriptOwner {
  readonly sessionId: string;
  readonly tenantId: string;
}

/**
 * Conversations and frames of sessions as encrypted chunks in the object store. Their keys are not those of the files, which
 * workers get.
 */
export class TranscriptChunks {
  readonly #parts: TranscriptChunksParts;
  readonly #uploads = new Slots(UPLOADS_AT_ONCE);

  constructor(parts: TranscriptChunksParts) {
    this.#parts = parts;
  }

  /**
   * Stores content, and only what of it is not stored yet. What it returns must be named by the session within an hour.
   * @throws ObjectStoreError; the signal's reason, even if the object store does not react to it
   */
  store(owner: TranscriptOwner, content: Buffer, signal: AbortSignal): Promise<StoredContent> {
    return this.#uploads.run(
      () => untilAborted(this.#store(owner, content, signal), signal),
      signal,
    );
  }

  /**
   * The content that was stored, verified chunk by chunk.
   * @throws DamagedChunkError when a chunk is missing or not what was stored; ObjectStoreError
   *   `object_store_unavailable`, also when it does not answer
   */
  async read(owner: TranscriptOwner, content: Content): Promise<Buffer> {
    if (!isStored(content)) return content;
    const keys = await this.#keysOf(owner);
    const objects = await this.#objectsOf(owner, content);
    const slots = new Slots(CHUNKS_AT_ONCE);
    const chunks = await answering(READ_MS, (signal) =>
      Promise.all(
        content.chunkIds.map((id) =>
          slots.run(async () => {
            const text = chunkTextOf(id);
            return openChunk(await this.#fetch(objects, text, signal), text, keys);
          }, signal),
        ),
      ),
    );
    const bytes = Buffer.concat(chunks);
    if (bytes.length !== content.sizeBytes) {
      throw new DamagedChunkError(
        `A stored transcript has ${bytes.length} bytes, not ${content.sizeBytes}.`,
      );
    }
    return bytes;
  }

  /**
   * Checks that the object store answers, if part of the session's transcript is in it.
   * @throws ObjectStoreError `object_store_unavailable`
   */
  async check(sessionId: string): Promise<void> {
    const key = await this.#parts.store.sessionHistory.transcriptObject(sessionId);
    if (key === undefined) return;
    await answering(CHECK_MS, (signal) => this.#parts.objects.head(key, signal));
  }

  async #store(
    owner: TranscriptOwner,
    content: Buffer,
    signal: AbortSignal,
  ): Promise<StoredContent> {
    const keys = await this.#keysOf(owner);
    const chunkIds: Buffer[] = [];
    let batch = new Map<string, Buffer>();
    for await (const chunk of cutIntoChunks(only(content), keys.gear)) {
      signal.throwIfAborted();
      const id = chunkIdOf(chunk, keys);
      chunkIds.push(chunkBytesOf(id));
      batch.set(id, chunk);
      if (batch.size < CHUNKS_AT_ONCE) continue;
      await this.#storeMissing(owner, batch, keys, signal);
      batch = new Map();
    }
    await this.#storeMissing(owner, batch, keys, signal);
    return { sizeBytes: content.length, chunkIds };
  }

  async #storeMissing(
    { sessionId }: TranscriptOwner,
    batch: ReadonlyMap<string, Buffer>,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, objects } = this.#parts;
    const ids = [...batch.keys()].map(chunkBytesOf);
    const renewed = await store.transcriptChunks.renew(sessionId, ids);
    const known = new Set(renewed.map(chunkTextOf));
    const missing = [...batch].filter(([id]) => !known.has(id));
    const sealed = await Promise.all(
      missing.map(async ([id, plain]) => [id, await sealChunk(plain, id, keys)] as const),
    );
    const announced = await store.transcriptChunks.announce(
      sessionId,
      sealed.map(([id, bytes]) => ({
        id: chunkBytesOf(id),
        objectKey: newObjectKey(sessionId),
        storedBytes: bytes.length,
      })),
    );
    const contents = new Map(sealed);
    signal.throwIfAborted();
    await Promise.all(
      announced.map(async ({ id, objectKey }) => {
        const bytes = contents.get(chunkTextOf(id));
        if (bytes === undefined) throw new Error('the ledger asks for an unknown chunk');
        await objects.put(objectKey, bytes, { size: bytes.length, signal });
      }),
    );
    await store.transcriptChunks.confirm(announced.map(({ objectKey }) => objectKey));
  }

  /** The keys of the objects of the content, by the ids of the chunks. */
  async #objectsOf(
    { sessionId }: TranscriptOwner,
    { chunkIds }: StoredContent,
  ): Promise<Map<string, string>> {
    const rows = await this.#parts.store.transcriptChunks.find(sessionId, chunkIds);
    return new Map(rows.map(({ id, objectKey }) => [chunkTextOf(id), objectKey]));
  }

  async #fetch(
    objects: ReadonlyMap<string, string>,
    id: string,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const key = objects.get(id);
    if (key === undefined) throw new DamagedChunkError(`The stored chunk ${id} is missing.`);
    try {
      const { body } = await this.#parts.objects.get(key, { signal });
      return await buffer(body);
    } catch (cause) {
      if (!isObjectStoreError(cause, 'object_not_found')) throw cause;
      throw new DamagedChunkError(`The stored chunk ${id} is missing.`, { cause });
    }
  }

  async #keysOf({ sessionId, tenantId }: TranscriptOwner): Promise<ChunkKeys> {
    const purpose = `svc session transcript v1 ${sessionId}`;
    return deriveChunkKeys(await this.#parts.keys.derive(tenantId, purpose));
  }
}

/** Runs `call` until it settles or the time is over. @throws ObjectStoreError `object_store_unavailable` after that */
async function answering<T>(ms: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  using deadline = openDeadline(undefined, ms);
  const { signal } = deadline;
  try {
    return await untilAborted(call(signal), signal);
  } catch (cause) {
    if (!signal.aborted) throw cause;
    const text = `The object store did not answer within ${ms} ms.`;
    throw new ObjectStoreError('object_store_unavailable', text, { cause });
  }
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
