import { ListWorkspacesResponse } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/workspaces`: the workspaces that have files. */
export const listWorkspaces: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.get(
    '/v1/workspaces',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listWorkspaces',
        tags: ['Workspaces'],
        summary: 'List workspaces',
        security: BY_ACCOUNT,
        response: {
          200: ListWorkspacesResponse,
          ...authenticatedProblems('object_store_unavailable'),
        },
      },
    },
    (request, reply) => workspaces.list(callerOf(request).tenantId, clientGoneSignal(reply)),
  );
};
