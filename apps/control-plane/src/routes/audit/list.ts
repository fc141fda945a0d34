import { AuditQuery, ListAuditResponse } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/audit`: the events of the account, newest first. */
export const listAudit: Route<'auth' | 'audit'> = (app, { auth, audit }) => {
  app.get(
    '/v1/audit',
    {
      onRequest: auth.account,
      schema: {
        operationId: 'listAudit',
        tags: ['Audit'],
        summary: "Read the account's audit records",
        security: BY_ACCOUNT,
        querystring: AuditQuery,
        response: { 200: ListAuditResponse, ...authenticatedProblems('validation_failed') },
      },
    },
    (request) => audit.list(callerOf(request).tenantId, request.query),
  );
};
