/** `POST /v1/billing/checkout`. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';

export const CheckoutRequest = Type.Object({
  credit_amount: Type.Integer({
    minimum: LIMITS.paymentCentsMin,
    maximum: LIMITS.paymentCentsMax,
    description: 'Cents to buy.',
  }),
});
export type CheckoutRequest = Static<typeof CheckoutRequest>;

export const CheckoutResponse = Type.Object(
  { url: Type.String({ format: 'uri', description: 'The page on which to pay.' }) },
  { title: 'Checkout' },
);
export type CheckoutResponse = Static<typeof CheckoutResponse>;
