import { acceptFormOnly } from '@svc/service-kit';
import { type Static, Type } from 'typebox';
import { LOCAL_CHECKOUT_PATH, TOKEN_CHARS } from '../../billing/local/local-checkouts.ts';
import { BODY_PROBLEMS, problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';

const FORM = 'application/x-www-form-urlencoded';
const Token = Type.String({ minLength: 1, maxLength: TOKEN_CHARS });
const Confirmation = Type.Object({ token: Token, form_token: Token });

/** `POST /billing/checkout`: credits the account of a purchase without a payment provider, once. */
export const confirmLocalCheckout: Route<'payments'> = (app, services) => {
  // A separate scope, since the body is not JSON.
  app.register(async (scope) => {
    acceptFormOnly(scope);
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'payments'> = (app, { payments }) => {
  app.post(
    LOCAL_CHECKOUT_PATH,
    {
      schema: {
        operationId: 'confirmLocalCheckout',
        tags: ['Billing'],
        summary: 'Confirm a purchase, if there is no payment provider',
        description: 'The form of the page. A repeated confirmation has no effect.',
        body: { content: { [FORM]: { schema: Confirmation } } },
        response: {
          303: { description: 'Back to the page.', type: 'null' },
          ...problems(...BODY_PROBLEMS, 'checkout_not_found', 'database_unavailable'),
        },
      },
    },
    async (request, reply) => {
      const { token, form_token: formToken } = request.body as Static<typeof Confirmation>;
      await payments.local.confirm(token, formToken);
      return reply.redirect(`${LOCAL_CHECKOUT_PATH}?token=${encodeURIComponent(token)}`, 303);
    },
  );
};
