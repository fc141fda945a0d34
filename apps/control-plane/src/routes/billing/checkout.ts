import { CheckoutRequest, CheckoutResponse } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems, BODY_PROBLEMS } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/billing/checkout`: begins a purchase of credit. */
export const createCheckout: Route<'auth' | 'payments' | 'limits'> = (app, services) => {
  const { auth, payments, limits } = services;
  app.post(
    '/v1/billing/checkout',
    {
      onRequest: [auth.account, limits.checkoutRate],
      schema: {
        operationId: 'createCheckout',
        tags: ['Billing'],
        summary: 'Begin a purchase of credit',
        description:
          'The account is credited once the customer has paid on the page at `url`. Without a payment provider, that page says so and credits the account free of charge.',
        security: BY_ACCOUNT,
        body: CheckoutRequest,
        response: {
          200: CheckoutResponse,
          ...authenticatedProblems(
            ...BODY_PROBLEMS,
            'rate_limited',
            'payment_provider_unavailable',
          ),
        },
      },
    },
    async (request, reply) => {
      const { tenantId } = callerOf(request);
      const purchase = { tenantId, amount: request.body.credit_amount };
      return { url: await payments.provider.checkout(purchase, clientGoneSignal(reply)) };
    },
  );
};
