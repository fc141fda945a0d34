import { VerifyCodeRequest, VerifyTenantResponse } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/tenants/verify`: turns a code into an account, an API key and an account token. */
export const verifyTenant: Route = (app, { tenants }) => {
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
          ...problems(
            'invalid_json',
            'validation_failed',
            'email_invalid',
            'otp_invalid',
            'payload_too_large',
            'unsupported_media_type',
            'database_unavailable',
          ),
        },
      },
    },
    (request) => tenants.verify(request.body.email, request.body.code),
  );
};
