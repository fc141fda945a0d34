import { MessageResponse, RequestCodeRequest } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { CODE_ON_ITS_WAY, CODE_REQUEST_PROBLEMS } from './problems.ts';

/** `POST /v1/auth/login`: sends a one-time code. Redeeming the first one creates the account. */
export const login: Route<'tenants'> = (app, { tenants }) => {
  app.post(
    '/v1/auth/login',
    {
      schema: {
        operationId: 'login',
        tags: ['Sign-in'],
        summary: 'Send a one-time code to sign in',
        body: RequestCodeRequest,
        response: { 200: MessageResponse, ...problems(...CODE_REQUEST_PROBLEMS) },
      },
    },
    async (request, reply) => {
      await tenants.requestCode(request.body.email, request.ip);
      return reply.code(200).send({ message: CODE_ON_ITS_WAY });
    },
  );
};
