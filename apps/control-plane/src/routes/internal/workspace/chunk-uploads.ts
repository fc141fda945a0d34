import { ChunkUrls, UploadChunksRequest, WorkerSandboxParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/chunks/uploads`: the URLs by which a worker uploads chunks. */
export const workspaceChunkUploads: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/chunks/uploads`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        body: UploadChunksRequest,
        response: { 200: ChunkUrls },
      },
    },
    (request) => mountedWorkspaces.chunks.announce(mountOf(request, request.body), request.body),
  );
};
