import { CreatePortLinkRequest, PortLink, SandboxParams } from '@svc/contract';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/sandboxes/{id}/links`: a short-lived link to a port. */
export const createPortLink: Route<'auth' | 'ports'> = (app, { auth, ports }) => {
  app.post(
    '/v1/sandboxes/:id/links',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'createPortLink',
        tags: ['Ports'],
        summary: 'Make a link to a port',
        description:
          'The link opens the port, for a browser or any other client, without the API key. It ends with its time, with the sandbox, and with the API key that made it.',
        security: BY_API_KEY,
        params: SandboxParams,
        body: CreatePortLinkRequest,
        response: {
          201: PortLink,
          ...authenticatedProblems(
            'sandbox_not_found',
            'sandbox_not_running',
            'port_not_allowed',
            ...BODY_PROBLEMS,
          ),
        },
      },
    },
    async (request, reply) => {
      const { port, expires_in_seconds: seconds } = request.body;
      const link = await ports.links.create(callerOf(request), request.params.id, port, seconds);
      return reply.code(201).send(link);
    },
  );
};
