import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import { type ChunkOwner, StoredChunks } from '../../chunks/stored-chunks.ts';
import type { Objects } from '../../objects/open-objects.ts';
import type { TenantKeys } from '../../secrets/tenant-keys.ts';
import { isSessionId } from '../find.ts';
import { newObjectKey } from './object-keys.ts';

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

/** Chunks of sessions. Methods throw ServiceError `session_not_found`, `stale_generation` and `session_erased`. */
export type SessionChunks = StoredChunks<ChunksOwner>;

/** Serves the chunks of sessions. */
export function createSessionChunks({ store, objects, keys }: SessionChunksParts): SessionChunks {
  return new StoredChunks<ChunksOwner>({
    chunks: store.sessionChunks,
    objects,
    keys,
    find: (request) => findOwner(store, request),
    purpose: ({ id }) => `svc session chunks v1 ${id}`,
    newObjectKey: ({ id }) => newObjectKey(id),
    full: 'session_storage_full',
  });
}

async function findOwner(
  store: Pick<Store, 'sessions'>,
  { workerId, sessionId, generation }: ChunksOwner,
): Promise<ChunkOwner> {
  const held = isSessionId(sessionId)
    ? await store.sessions.heldBy(workerId, sessionId, { generation })
    : undefined;
  if (held === undefined) throw new ServiceError('session_not_found');
  if (held.generation !== generation) throw new ServiceError('stale_generation');
  if (held.erased_at !== null) throw new ServiceError('session_erased');
  return { tenantId: held.tenant_id, id: sessionId };
}
