import { renderReturn } from '../../billing/local/page.ts';
import { problems } from '../../openapi/problems.ts';
import type { Route } from '../../services.ts';
import { asPage, HTML } from './html.ts';

/** `GET /billing/return`: where a payment provider sends customers back to. */
export const returnPage: Route<never> = (app) => {
  app.get(
    '/billing/return',
    {
      schema: {
        operationId: 'billingReturnPage',
        tags: ['Billing'],
        summary: 'The page after a payment',
        response: { 200: HTML, ...problems() },
      },
    },
    async (_request, reply) => asPage(reply).send(renderReturn()),
  );
};
