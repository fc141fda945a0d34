import { MessageResponse, RequestCodeRequest } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/tenants`: sends a one-time code; the answer never tells whether the account exists. */
export const requestCode: Route = (app, { tenants }) => {
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
          ...problems(
            'invalid_json',
            'validation_failed',
            'email_invalid',
            'payload_too_large',
            'unsupported_media_type',
            'otp_rate_limited',
            'ip_rate_limited',
            'email_send_failed',
            'database_unavailable',
          ),
        },
      },
    },
    async (request) => {
      await tenants.requestCode(request.body.email, request.ip);
      return { message: 'If the address can receive mail, a code is on its way.' };
    },
  );
};
