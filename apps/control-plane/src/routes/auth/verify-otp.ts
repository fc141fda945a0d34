import { VerifyCodeRequest, VerifyOtpResponse } from '@svc/contract';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { VERIFY_PROBLEMS } from './problems.ts';

/** `POST /v1/auth/verify-otp`: exchanges a code for an account and an account token. */
export const verifyOtp: Route<'tenants'> = (app, { tenants }) => {
  app.post(
    '/v1/auth/verify-otp',
    {
      schema: {
        operationId: 'verifyOtp',
        tags: ['Sign-in'],
        summary: 'Redeem a one-time code for an account token',
        body: VerifyCodeRequest,
        response: { 200: VerifyOtpResponse, ...problems(...VERIFY_PROBLEMS) },
      },
    },
    (request) => tenants.signIn(request.body.email, request.body.code, request.ip),
  );
};
