import { Type } from 'typebox';
import { LOCAL_CHECKOUT_PATH, TOKEN_CHARS } from '../../billing/local/local-checkouts.ts';
import { renderCheckout } from '../../billing/local/page.ts';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { asPage, HTML } from './html.ts';

const Query = Type.Object({ token: Type.String({ minLength: 1, maxLength: TOKEN_CHARS }) });

/** `GET /billing/checkout`: the page of a purchase without a payment provider. Its link is the credential. */
export const localCheckoutPage: Route<'payments'> = (app, { payments }) => {
  app.get(
    LOCAL_CHECKOUT_PATH,
    {
      schema: {
        operationId: 'localCheckoutPage',
        tags: ['Billing'],
        summary: 'The page of a purchase, if there is no payment provider',
        querystring: Query,
        response: {
          200: HTML,
          ...problems('validation_failed', 'checkout_not_found', 'database_unavailable'),
        },
      },
    },
    async (request, reply) => {
      const { token } = request.query;
      const checkout = await payments.local.find(token);
      return asPage(reply).send(renderCheckout(token, checkout));
    },
  );
};
