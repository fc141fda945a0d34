import { ListSandboxesQuery, ListSandboxesResponse } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `GET /v1/sandboxes` */
export const listSandboxes: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.get(
    '/v1/sandboxes',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'listSandboxes',
        tags: ['Sandboxes'],
        summary: "List the caller's sandboxes",
        description:
          'Live sandboxes, and the last 100 of those that ended within 15 minutes. The array, or an object with `partial: true` when a worker that holds some of them did not answer in time; their last known records are included. With `limit` or `after`, a page of the live ones and of all that ended within 15 minutes; the `Link` header (RFC 8288) has the next one as `rel="next"`.',
        security: BY_API_KEY,
        querystring: ListSandboxesQuery,
        response: {
          200: ListSandboxesResponse,
          ...authenticatedProblems('validation_failed', 'no_workers', 'too_many_operations'),
        },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const { answer, next } = await sandboxes.list(caller, request.query, clientGoneSignal(reply));
      if (next !== undefined) {
        const query = new URLSearchParams({ limit: `${next.limit}`, after: next.after });
        reply.header('link', `</v1/sandboxes?${query}>; rel="next"`);
      }
      return answer;
    },
  );
};
