import { ChunkSecret, ChunkSecretQuery, WorkerSandboxParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `GET …/workspace/chunk-secret`: the secret of a workspace's chunks, for the worker of a sandbox of it. */
export const workspaceChunkSecret: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.get(
    `${MOUNT_ROUTE}/chunk-secret`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        querystring: ChunkSecretQuery,
        response: { 200: ChunkSecret },
      },
    },
    (request) => mountedWorkspaces.chunks.secret(mountOf(request, request.query)),
  );
};
