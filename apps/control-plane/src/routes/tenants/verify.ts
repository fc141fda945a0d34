import { VerifyCodeRequest, VerifyTenantResponse } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { VERIFY_PROBLEMS } from '../auth/problems.ts';

/** `POST /v1/tenants/verify`: exchanges a code for an account, an API key and an account token. */
export const verifyTenant: Route<'tenants'> = (app, { tenants }) => {
  app.post(
    '/v1/tenants/verify',
    {
      schema: {
        operationId: 'verifyTenant',
        tags: ['Tenants'],
        summary: 'Redeem a one-time code',
        body: VerifyCodeRequest,
        response: {
          200: VerifyTenantResponse,
          ...problems(...VERIFY_PROBLEMS, 'api_key_limit_reached'),
        },
      },
    },
    (request) => tenants.verify(request.body.email, request.body.code, request.ip),
  );
};
