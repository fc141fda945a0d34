import {
  type ChunkSecret,
  type ChunkUrls,
  type MissingChunks,
  type NamedChunks,
  ServiceError,
  type UploadChunksRequest,
} from '@svc/contract';
import { openDeadline, Slots } from '@svc/service-kit/concurrency';
import type { HeldSession, Store } from '@svc/store';
import { onObjects } from '../../objects/object-failures.ts';
import type { Objects } from '../../objects/open-objects.ts';
import type { TenantKeys } from '../../secrets/tenant-keys.ts';
import { isSessionId } from '../find.ts';
import { chunkBytesOf, chunkTextOf } from './chunk-ids.ts';
import { newObjectKey } from './object-keys.ts';

/** For one upload or download of a chunk, with a wait for others before it. */
const URL_SECONDS = 300;
const LOOKUPS_AT_ONCE = 16;
/** For all objects of a request. */
const LOOKUPS_MS = 10_000;

export interface SessionChunksParts {
  readonly store: Pick<Store, 'sessions' | 'sessionChunks'>;
  readonly objects: Objects;
  readonly keys: Pick<TenantKeys, 'derive'>;
}

/** A session as a worker names it: by the start whose sandbox it has or had. */
export interface ChunksOwner {
  readonly workerId: string;
  readonly sessionId: string;
  readonly generation: number;
}

/**
 * The chunks of the files of sessions, for the workers that save and restore them. Chunks belong to one session: another
 * one does not see them, even with the same content. All methods throw ServiceError `session_not_found`,
 * `stale_generation` and `session_erased`.
 */
export class SessionChunks {
  readonly #parts: SessionChunksParts;

  constructor(parts: SessionChunksParts) {
    this.#parts = parts;
  }

  /** The secret from which the worker derives the keys of this session's chunks. */
  async secret(owner: ChunksOwner): Promise<ChunkSecret> {
    const { tenant_id: tenantId } = await this.#held(owner);
    const secret = await this.#parts.keys.derive(
      tenantId,
      `svc session chunks v1 ${owner.sessionId}`,
    );
    return { secret: secret.toString('base64') };
  }

  /** Which of these chunks are not stored. The others stay for now. */
  async missing(owner: ChunksOwner, { ids }: Pick<NamedChunks, 'ids'>): Promise<MissingChunks> {
    await this.#held(owner);
    const stored = await this.#parts.store.sessionChunks.renew(
      owner.sessionId,
      ids.map(chunkBytesOf),
    );
    const known = new Set(stored.map(chunkTextOf));
    return { ids: ids.filter((id) => !known.has(id)) };
  }

  /** Where to upload these chunks. Leaves out those that are stored. */
  async announce(
    owner: ChunksOwner,
    { chunks }: Pick<UploadChunksRequest, 'chunks'>,
  ): Promise<ChunkUrls> {
    await this.#held(owner);
    const { store, objects } = this.#parts;
    const sizes = new Map(chunks.map(({ id, stored_bytes }) => [id, stored_bytes]));
    const announced = [...sizes].map(([id, storedBytes]) => ({
      id: chunkBytesOf(id),
      objectKey: newObjectKey(owner.sessionId),
      storedBytes,
    }));
    const rows = await store.sessionChunks.announce(owner.sessionId, announced);
    const urls = rows.map(async ({ id: bytes, objectKey }) => {
      const id = chunkTextOf(bytes);
      const size = sizes.get(id);
      const limits = { expiresSeconds: URL_SECONDS, ...(size === undefined ? {} : { size }) };
      return { id, url: this.#forWorkers(await objects.store.presignPut(objectKey, limits)) };
    });
    return { chunks: await Promise.all(urls) };
  }

  /** Confirms uploads. @throws ServiceError `file_not_found` when one of them is not in the object store */
  async confirm(owner: ChunksOwner, { ids }: Pick<NamedChunks, 'ids'>): Promise<void> {
    await this.#held(owner);
    const { store, objects } = this.#parts;
    const waiting = await store.sessionChunks.unconfirmed(owner.sessionId, ids.map(chunkBytesOf));
    const limit = new Slots(LOOKUPS_AT_ONCE);
    using deadline = openDeadline(undefined, LOOKUPS_MS);
    const { signal } = deadline;
    const checks = waiting.map(({ objectKey, storedBytes }) =>
      limit.run(async () => {
        const object = await onObjects(() => objects.store.head(objectKey, signal));
        if (object?.size !== storedBytes) throw new ServiceError('file_not_found');
      }, signal),
    );
    await Promise.all(checks);
    await store.sessionChunks.confirm(waiting.map(({ objectKey }) => objectKey));
  }

  /** Where to download these chunks. @throws ServiceError `file_not_found` when one of them is not stored */
  async locate(owner: ChunksOwner, { ids }: Pick<NamedChunks, 'ids'>): Promise<ChunkUrls> {
    await this.#held(owner);
    const { store, objects } = this.#parts;
    const rows = await store.sessionChunks.find(owner.sessionId, ids.map(chunkBytesOf));
    if (rows.length !== new Set(ids).size) throw new ServiceError('file_not_found');
    const urls = rows.map(async ({ id, objectKey }) => ({
      id: chunkTextOf(id),
      url: this.#forWorkers(
        await objects.store.presignGet(objectKey, { expiresSeconds: URL_SECONDS }),
      ),
    }));
    return { chunks: await Promise.all(urls) };
  }

  /** Workers do not reach the control plane at its public address, but at one whose certificate they know. */
  #forWorkers(url: string): string {
    if (this.#parts.objects.urls === undefined) return url;
    const { pathname, search } = new URL(url);
    return pathname + search;
  }

  async #held({ workerId, sessionId, generation }: ChunksOwner): Promise<HeldSession> {
    const held = isSessionId(sessionId)
      ? await this.#parts.store.sessions.heldBy(workerId, sessionId, { generation })
      : undefined;
    if (held === undefined) throw new ServiceError('session_not_found');
    if (held.generation !== generation) throw new ServiceError('stale_generation');
    if (held.erased_at !== null) throw new ServiceError('session_erased');
    return held;
  }
}
