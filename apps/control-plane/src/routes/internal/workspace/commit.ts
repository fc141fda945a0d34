import { WorkspaceCommit, WorkspaceCommitRequest, WorkspaceFlushParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/flushes/{flush_id}/commit`: applies the staged changes of a flush. */
export const commitWorkspaceFlush: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/flushes/:flush_id/commit`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkspaceFlushParams,
        body: WorkspaceCommitRequest,
        response: { 200: WorkspaceCommit },
      },
    },
    (request) => mountedWorkspaces.commit(mountOf(request, request.body), request.params.flush_id),
  );
};
