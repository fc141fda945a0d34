/** `GET /v1/billing/balance`. */

import { type Static, Type } from 'typebox';

export const BalanceResponse = Type.Object(
  { credit_balance: Type.Integer({ description: 'Cents; negative when usage has exceeded it.' }) },
  { title: 'Balance' },
);
export type BalanceResponse = Static<typeof BalanceResponse>;
