import { WorkspaceChanges, WorkspaceFlushParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { CHANGES_BODY_BYTES } from '../body-limits.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/flushes/{flush_id}/changes`: stages a page of the changes of a flush. */
export const stageWorkspaceChanges: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/flushes/:flush_id/changes`,
    {
      onRequest: componentAuth.worker,
      bodyLimit: CHANGES_BODY_BYTES,
      schema: { hide: true, params: WorkspaceFlushParams, body: WorkspaceChanges },
    },
    async (request, reply) => {
      const mount = mountOf(request, request.body);
      await mountedWorkspaces.stage(mount, request.params.flush_id, request.body);
      return reply.code(204).send();
    },
  );
};
