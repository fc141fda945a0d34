import { WorkspaceDeletedResponse, WorkspaceParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { READ_PROBLEMS } from './problems.ts';
import { scopeOf, WORKSPACE_ROUTE } from './scope.ts';

/** `DELETE /v1/workspaces/{app_id}/{capset_id}`: deletes every file of a workspace with its content. */
export const deleteWorkspace: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.delete(
    WORKSPACE_ROUTE,
    {
      onRequest: auth.account,
      schema: {
        operationId: 'deleteWorkspace',
        tags: ['Workspaces'],
        summary: 'Delete every file of a workspace',
        security: BY_ACCOUNT,
        params: WorkspaceParams,
        response: {
          200: WorkspaceDeletedResponse,
          ...authenticatedProblems(...READ_PROBLEMS, 'workspace_not_found'),
        },
      },
    },
    async (request, reply) => {
      await workspaces.delete(scopeOf(request, request.params), clientGoneSignal(reply));
      return { status: 'deleted' as const };
    },
  );
};
