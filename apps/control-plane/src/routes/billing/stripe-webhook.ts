import { ServiceError } from '@svc/contract';
import { acceptRawJsonOnly } from '@svc/service-kit';
import { Type } from 'typebox';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

/** `POST /v1/billing/webhooks/stripe`: events of Stripe. The signature over the body is the credential. */
export const stripeWebhook: Route<'payments'> = (app, services) => {
  // A separate scope, since the signature covers the bytes of the body.
  app.register(async (scope) => {
    acceptRawJsonOnly(scope);
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'payments'> = (app, { payments }) => {
  app.post(
    '/v1/billing/webhooks/stripe',
    {
      schema: {
        operationId: 'stripeWebhook',
        tags: ['Billing'],
        summary: 'Receive an event of Stripe',
        description: 'Answers 404 unless payments through Stripe are configured.',
        headers: Type.Object({ 'stripe-signature': Type.Optional(Type.String()) }),
        body: {
          content: { 'application/json': { schema: Type.Unsafe<Buffer>({}) } },
        },
        response: {
          200: Type.Object({ received: Type.Literal(true) }),
          ...problems(
            'webhook_signature_invalid',
            'route_not_found',
            'payload_too_large',
            'unsupported_media_type',
            'validation_failed',
            'database_unavailable',
          ),
        },
      },
    },
    async (request) => {
      if (payments.webhooks === undefined) throw new ServiceError('route_not_found');
      await payments.webhooks.receive(request.body as Buffer, request.headers['stripe-signature']);
      return { received: true as const };
    },
  );
};
