import { ListWorkspaceFilesResponse, WorkspaceFilesQuery, WorkspaceParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { READ_PROBLEMS } from './problems.ts';
import { scopeOf, WORKSPACE_ROUTE } from './scope.ts';

/** `GET /v1/workspaces/{app_id}/{capset_id}`: one page of files, in the order of their paths. */
export const listWorkspaceFiles: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.get(
    WORKSPACE_ROUTE,
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listWorkspaceFiles',
        tags: ['Workspaces'],
        summary: 'List the files of a workspace',
        security: BY_ACCOUNT,
        params: WorkspaceParams,
        querystring: WorkspaceFilesQuery,
        response: { 200: ListWorkspaceFilesResponse, ...authenticatedProblems(...READ_PROBLEMS) },
      },
    },
    (request, reply) =>
      workspaces.files(scopeOf(request, request.params), request.query, clientGoneSignal(reply)),
  );
};
