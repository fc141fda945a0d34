import type { ClaimedTopup } from '@svc/store';
import Stripe from 'stripe';
import { CURRENCY, METADATA } from './vocabulary.ts';

/** What became of a charge. `undecided`: Stripe did not answer, or has not decided yet. */
export type Charge =
  | { readonly kind: 'paid' }
  | { readonly kind: 'failed'; readonly failure: string }
  | { readonly kind: 'undecided'; readonly cause: unknown };

/**
 * Charges a saved payment method while its customer is away. The id of the top-up is the idempotency key: a repeated call
 * within a day charges nothing and returns the outcome of the first one.
 */
export async function charge(stripe: Stripe, topup: ClaimedTopup): Promise<Charge> {
  try {
    const { status } = await stripe.paymentIntents.create(
      {
        amount: topup.amount,
        currency: CURRENCY,
        customer: topup.customer,
        payment_method: topup.payment_method,
        allowed_payment_method_types: ['card'],
        off_session: true,
        confirm: true,
        description: 'Automatic top-up',
        metadata: { [METADATA.topup]: topup.topup_id, [METADATA.tenant]: topup.tenant_id },
      },
      { idempotencyKey: `svc-topup-${topup.topup_id}` },
    );
    if (status === 'succeeded') return { kind: 'paid' };
    if (status === 'processing') return { kind: 'undecided', cause: new Error('processing') };
    return { kind: 'failed', failure: status };
  } catch (error) {
    return failureOf(error);
  }
}

/** Only a refusal of this payment is final. A wrong key of the operator is not the customer's failure. */
function failureOf(error: unknown): Charge {
  const isFinal =
    error instanceof Stripe.errors.StripeCardError ||
    error instanceof Stripe.errors.StripeInvalidRequestError;
  if (!isFinal) return { kind: 'undecided', cause: error };
  return { kind: 'failed', failure: error.decline_code ?? error.code ?? error.type };
}
