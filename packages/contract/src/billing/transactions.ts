/** `GET /v1/billing/transactions`. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { Timestamp } from '../schema.ts';

export const TransactionsQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: LIMITS.pageDefault }),
  ),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 0,
      description: 'Number of newer transactions to skip.',
    }),
  ),
});
export type TransactionsQuery = Static<typeof TransactionsQuery>;

export const BillingTransaction = Type.Object(
  {
    id: Type.String({ examples: ['txn_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'] }),
    amount: Type.Integer({ description: 'Cents; negative for deductions.' }),
    description: Type.String(),
    timestamp: Timestamp,
  },
  { title: 'BillingTransaction' },
);
export type BillingTransaction = Static<typeof BillingTransaction>;

export const TransactionsResponse = Type.Object({
  transactions: Type.Array(BillingTransaction, { description: 'Newest first.' }),
});
export type TransactionsResponse = Static<typeof TransactionsResponse>;
