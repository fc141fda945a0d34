import { MessageResponse, RequestCodeRequest } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { CODE_ON_ITS_WAY, CODE_REQUEST_PROBLEMS } from './problems.ts';

/** `POST /v1/auth/register`: same as login: an address that has an account also gets a code. */
export const register: Route<'tenants'> = (app, { tenants }) => {
  app.post(
    '/v1/auth/register',
    {
      schema: {
        operationId: 'register',
        tags: ['Sign-in'],
        summary: 'Send a one-time code to sign up',
        body: RequestCodeRequest,
        response: { 201: MessageResponse, ...problems(...CODE_REQUEST_PROBLEMS) },
      },
    },
    async (request, reply) => {
      await tenants.requestCode(request.body.email, request.ip);
      return reply.code(201).send({ message: CODE_ON_ITS_WAY });
    },
  );
};
