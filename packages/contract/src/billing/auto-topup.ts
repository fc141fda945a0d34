/** `/v1/billing/auto-topup`. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';

const cents = (description: string) =>
  Type.Integer({ minimum: 0, maximum: LIMITS.paymentCentsMax, description });

export const AutoTopupConfig = Type.Object(
  {
    enabled: Type.Boolean(),
    threshold_amount: cents('Cents. A balance below this triggers a top-up.'),
    topup_amount: cents(`Cents to buy; at least ${LIMITS.paymentCentsMin} when enabled.`),
  },
  { title: 'AutoTopupConfig' },
);
export type AutoTopupConfig = Static<typeof AutoTopupConfig>;

export const UpdateAutoTopupResponse = Type.Object({ status: Type.Literal('updated') });
export type UpdateAutoTopupResponse = Static<typeof UpdateAutoTopupResponse>;
