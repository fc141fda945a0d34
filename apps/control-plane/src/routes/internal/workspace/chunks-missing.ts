import { MissingChunks, NamedChunks, WorkerSandboxParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/chunks/missing`: which chunks of its files a flush has to upload. */
export const workspaceChunksMissing: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/chunks/missing`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        body: NamedChunks,
        response: { 200: MissingChunks },
      },
    },
    (request) => mountedWorkspaces.chunks.missing(mountOf(request, request.body), request.body),
  );
};
