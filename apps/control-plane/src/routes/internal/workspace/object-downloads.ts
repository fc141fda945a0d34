import { WorkerSandboxParams, WorkspaceObjects, WorkspaceObjectsRequest } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/objects/downloads`: the URLs by which a worker downloads files that customers uploaded. */
export const workspaceObjectDownloads: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/objects/downloads`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        body: WorkspaceObjectsRequest,
        response: { 200: WorkspaceObjects },
      },
    },
    (request) => mountedWorkspaces.objects(mountOf(request, request.body), request.body),
  );
};
