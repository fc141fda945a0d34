import {
  type ChunkSecret,
  type ChunkUrls,
  type ErrorCode,
  type MissingChunks,
  type NamedChunks,
  ServiceError,
  type UploadChunksRequest,
} from '@svc/contract';
import { openDeadline, Slots } from '@svc/service-kit/concurrency';
import { type ChunkRepository, TooManyUnusedChunks } from '@svc/store';
import { onObjects } from '../objects/object-failures.ts';
import type { Objects } from '../objects/open-objects.ts';
import { urlForWorkers, WORKER_URL_SECONDS } from '../objects/urls-for-workers.ts';
import type { TenantKeys } from '../secrets/tenant-keys.ts';
import { chunkBytesOf, chunkTextOf } from './chunk-ids.ts';

const LOOKUPS_AT_ONCE = 16;
/** For all objects of a request. */
const LOOKUPS_MS = 10_000;

/** What has chunks: a session or a workspace. */
export interface ChunkOwner {
  readonly tenantId: string;
  readonly id: string;
}

/** Chunks of one kind of owner, which workers name by a `Request`. */
export interface StoredChunksParts<Request> {
  readonly chunks: ChunkRepository;
  readonly objects: Objects;
  readonly keys: Pick<TenantKeys, 'derive'>;
  /** The owner that a worker may access. Throws a ServiceError if there is none. */
  readonly find: (request: Request) => Promise<ChunkOwner>;
  /** What the secret of an owner is derived from. It never changes, since stored chunks depend on it. */
  readonly purpose: (owner: ChunkOwner) => string;
  /** A key that no other object has or had. */
  readonly newObjectKey: (owner: ChunkOwner) => string;
  /** What refuses uploads while the tenant has too many chunks that nothing uses. */
  readonly full: ErrorCode;
}

/**
 * The chunks of stored files, for the workers that save and restore them. Chunks belong to one owner: another one does
 * not see them, even with the same content. All methods throw the errors of `find`.
 */
export class StoredChunks<Request> {
  readonly #parts: StoredChunksParts<Request>;

  constructor(parts: StoredChunksParts<Request>) {
    this.#parts = parts;
  }

  /** The secret from which the worker derives the keys of the owner's chunks. */
  async secret(request: Request): Promise<ChunkSecret> {
    const secret = await this.secretOf(await this.#parts.find(request));
    return { secret: secret.toString('base64') };
  }

  /** The secret of an owner's chunks. */
  secretOf(owner: ChunkOwner): Promise<Buffer> {
    const { keys, purpose } = this.#parts;
    return keys.derive(owner.tenantId, purpose(owner));
  }

  /** Which of these chunks are not stored. The others stay for now. */
  async missing(request: Request, { ids }: Pick<NamedChunks, 'ids'>): Promise<MissingChunks> {
    const { id: ownerId } = await this.#parts.find(request);
    const stored = await this.#parts.chunks.renew(ownerId, ids.map(chunkBytesOf));
    const known = new Set(stored.map(chunkTextOf));
    return { ids: ids.filter((id) => !known.has(id)) };
  }

  /**
   * Where to upload these chunks. Leaves out those that are stored.
   * @throws ServiceError `full`, which passes within the hour in which unused chunks are kept
   */
  async announce(
    request: Request,
    { chunks }: Pick<UploadChunksRequest, 'chunks'>,
  ): Promise<ChunkUrls> {
    const { chunks: repository, objects, find, newObjectKey, full } = this.#parts;
    const owner = await find(request);
    const sizes = new Map(chunks.map(({ id, stored_bytes }) => [id, stored_bytes]));
    const announced = [...sizes].map(([id, storedBytes]) => ({
      id: chunkBytesOf(id),
      objectKey: newObjectKey(owner),
      storedBytes,
    }));
    const rows = await repository.announce(owner.id, announced).catch((cause: unknown) => {
      if (cause instanceof TooManyUnusedChunks) throw new ServiceError(full, undefined, { cause });
      throw cause;
    });
    const urls = rows.map(async ({ id: bytes, objectKey }) => {
      const id = chunkTextOf(bytes);
      const size = sizes.get(id);
      const limits = {
        expiresSeconds: WORKER_URL_SECONDS,
        ...(size === undefined ? {} : { size }),
      };
      return { id, url: urlForWorkers(objects, await objects.store.presignPut(objectKey, limits)) };
    });
    return { chunks: await Promise.all(urls) };
  }

  /** Confirms uploads. @throws ServiceError `file_not_found` when one of them is not in the object store */
  async confirm(request: Request, { ids }: Pick<NamedChunks, 'ids'>): Promise<void> {
    const { chunks, objects, find } = this.#parts;
    const { id: ownerId } = await find(request);
    const waiting = await chunks.unconfirmed(ownerId, ids.map(chunkBytesOf));
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
    await chunks.confirm(waiting.map(({ objectKey }) => objectKey));
  }

  /** Where to download these chunks. @throws ServiceError `file_not_found` when one of them is not stored */
  async locate(request: Request, { ids }: Pick<NamedChunks, 'ids'>): Promise<ChunkUrls> {
    const { chunks, objects, find } = this.#parts;
    const { id: ownerId } = await find(request);
    const rows = await chunks.find(ownerId, ids.map(chunkBytesOf));
    if (rows.length !== new Set(ids).size) throw new ServiceError('file_not_found');
    const urls = rows.map(async ({ id, objectKey }) => ({
      id: chunkTextOf(id),
      url: urlForWorkers(
        objects,
        await objects.store.presignGet(objectKey, { expiresSeconds: WORKER_URL_SECONDS }),
      ),
    }));
    return { chunks: await Promise.all(urls) };
  }
}
