import { ChunkUrls, NamedChunks, WorkerSandboxParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/chunks/downloads`: the URLs by which a worker downloads chunks. */
export const workspaceChunkDownloads: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/chunks/downloads`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        body: NamedChunks,
        response: { 200: ChunkUrls },
      },
    },
    (request) => mountedWorkspaces.chunks.locate(mountOf(request, request.body), request.body),
  );
};
