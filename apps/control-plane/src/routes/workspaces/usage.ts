import { WorkspaceParams, WorkspaceUsage } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { READ_PROBLEMS } from './problems.ts';
import { scopeOf, WORKSPACE_ROUTE } from './scope.ts';

/** `GET /v1/workspaces/{app_id}/{capset_id}/usage`: the size of a workspace. */
export const workspaceUsage: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.get(
    `${WORKSPACE_ROUTE}/usage`,
    {
      onRequest: auth.account,
      schema: {
        operationId: 'workspaceUsage',
        tags: ['Workspaces'],
        summary: 'Read the size of a workspace',
        security: BY_ACCOUNT,
        params: WorkspaceParams,
        response: { 200: WorkspaceUsage, ...authenticatedProblems(...READ_PROBLEMS) },
      },
    },
    (request, reply) => workspaces.usage(scopeOf(request, request.params), clientGoneSignal(reply)),
  );
};
