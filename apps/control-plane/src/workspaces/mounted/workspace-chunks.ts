import type { Store } from '@svc/store';
import { StoredChunks, type StoredChunksParts } from '../../chunks/stored-chunks.ts';
import { newChunkKey } from '../object-keys.ts';
import { findMount, type MountRequest } from './find-mount.ts';

/** Serves the chunks of workspaces. Methods throw ServiceError `sandbox_not_found` and `stale_generation`. */
export function createWorkspaceChunks({
  store,
  ...shared
}: Pick<StoredChunksParts<MountRequest>, 'objects' | 'keys'> & {
  readonly store: Pick<Store, 'workspaces' | 'workspaceChunks'>;
}): StoredChunks<MountRequest> {
  return new StoredChunks<MountRequest>({
    ...shared,
    chunks: store.workspaceChunks,
    find: async (request) => {
      const { tenantId, workspaceId } = await findMount(store, request);
      return { tenantId, id: workspaceId };
    },
    purpose: ({ id }) => `svc workspace chunks v1 ${id}`,
    newObjectKey: ({ tenantId, id }) => newChunkKey({ tenantId, workspaceId: id }),
    full: 'workspace_quota_exceeded',
  });
}
