import { Readable } from 'node:stream';
import { DamagedChunkError } from '@svc/chunks';
import { RESTORE_ARCHIVE, ServiceError, type SessionState } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { ChunkStore } from '../chunks/chunk-store.ts';
import { ObjectTransferError } from '../control-plane/object-transfer.ts';
import type { ChunksOwner } from '../control-plane/session-chunks-api.ts';
import type { SessionDeps } from './build-session.ts';

/**
 * Uploads the files of a resumed session to the guest.
 * @throws ServiceError `session_files_damaged`, `object_store_unavailable`; ControlPlaneError, MicrovmError
 */
export async function restoreFiles(
  owner: ChunksOwner,
  { files_id: filesId, manifest }: Pick<SessionState, 'files_id' | 'manifest'>,
  vm: Pick<Microvm, 'upload'>,
  { api, chunks, tenantId }: Pick<SessionDeps, 'api' | 'chunks'> & { readonly tenantId: string },
  signal: AbortSignal,
): Promise<void> {
  if (filesId === undefined) return;
  const files =
    manifest === undefined
      ? await api.getEarlierFiles(owner.sessionId, filesId, signal)
      : Readable.from(new ChunkStore({ ...chunks, owner, tenantId }).read(manifest, signal), {
          objectMode: false,
        });
  let failure: unknown;
  files.once('error', (error) => {
    failure = error;
  });
  try {
    await vm.upload(RESTORE_ARCHIVE, files, signal);
  } catch (error) {
    // The failure of the stream is the cause, whatever the upload makes of it.
    if (failure instanceof DamagedChunkError) {
      throw new ServiceError('session_files_damaged', undefined, { cause: failure });
    }
    if (failure instanceof ObjectTransferError) {
      throw new ServiceError('object_store_unavailable', undefined, { cause: failure });
    }
    throw error;
  } finally {
    files.destroy();
  }
}
