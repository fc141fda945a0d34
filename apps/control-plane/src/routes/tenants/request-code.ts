import { MessageResponse, RequestCodeRequest } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { CODE_ON_ITS_WAY, CODE_REQUEST_PROBLEMS } from '../auth/problems.ts';

/** `POST /v1/tenants`: sends a one-time code; the answer does not reveal whether the account exists. */
export const requestCode: Route<'tenants'> = (app, { tenants }) => {
  app.post(
    '/v1/tenants',
    {
      schema: {
        operationId: 'requestCode',
        tags: ['Tenants'],
        summary: 'Send a one-time code by email',
        body: RequestCodeRequest,
        response: {
          200: MessageResponse,
          ...problems(...CODE_REQUEST_PROBLEMS),
        },
      },
    },
    async (request) => {
      await tenants.requestCode(request.body.email, request.ip);
      return { message: CODE_ON_ITS_WAY };
    },
  );
};
