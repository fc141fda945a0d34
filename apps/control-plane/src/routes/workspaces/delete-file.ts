import { WorkspaceDeletedResponse, WorkspaceFileParams, WorkspaceFileQuery } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { FILE_PROBLEMS } from './problems.ts';
import { FILE_ROUTE, filePathOf, scopeOf } from './scope.ts';

/** `DELETE /v1/workspaces/{app_id}/{capset_id}/files/{path}`: deletes a file with its content. */
export const deleteWorkspaceFile: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.delete(
    FILE_ROUTE,
    {
      onRequest: auth.account,
      schema: {
        operationId: 'deleteWorkspaceFile',
        tags: ['Workspaces'],
        summary: 'Delete a file of a workspace',
        security: BY_ACCOUNT,
        params: WorkspaceFileParams,
        querystring: WorkspaceFileQuery,
        response: {
          200: WorkspaceDeletedResponse,
          ...authenticatedProblems(...FILE_PROBLEMS, 'workspace_file_not_found'),
        },
      },
    },
    async (request, reply) => {
      const scope = scopeOf(request, request.params);
      await workspaces.deleteFile(scope, filePathOf(request), clientGoneSignal(reply));
      return { status: 'deleted' as const };
    },
  );
};
