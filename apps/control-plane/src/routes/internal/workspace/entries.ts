import { WorkerSandboxParams, WorkspaceEntries, WorkspaceEntriesQuery } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `GET …/workspace/entries`: a page of the entries of a sandbox's workspace. */
export const workspaceEntries: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.get(
    `${MOUNT_ROUTE}/entries`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: WorkerSandboxParams,
        querystring: WorkspaceEntriesQuery,
        response: { 200: WorkspaceEntries },
      },
    },
    (request, reply) =>
      mountedWorkspaces.entries(
        mountOf(request, request.query),
        request.query,
        clientGoneSignal(reply),
      ),
  );
};
