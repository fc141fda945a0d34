import { ServiceError } from '@svc/contract';
import type { Secret } from '@svc/service-kit';
import type { PaymentFact, ProviderEvent } from '@svc/store';
import type Stripe from 'stripe';
import { CURRENCY, MAX_TOPUP_FAILURES, METADATA } from './vocabulary.ts';

/** Age of the newest signature that is still accepted. */
const TOLERANCE_SECONDS = 300;

/**
 * Checks the signature and the age of a webhook request and reads its event. Undefined for an event that says nothing
 * about this service's payments.
 * @throws ServiceError `webhook_signature_invalid`
 */
export function readWebhook(
  stripe: Stripe,
  secret: Secret,
  body: Buffer,
  signature: string | undefined,
): ProviderEvent | undefined {
  const event = verified(stripe, secret, body, signature ?? '');
  const facts = factsOf(event);
  return facts.length === 0 ? undefined : { eventId: event.id, type: event.type, facts };
}

function verified(stripe: Stripe, secret: Secret, body: Buffer, signature: string): Stripe.Event {
  try {
    return stripe.webhooks.constructEvent(body, signature, secret.reveal(), TOLERANCE_SECONDS);
  } catch (cause) {
    throw new ServiceError('webhook_signature_invalid', undefined, { cause });
  }
}

function factsOf(event: Stripe.Event): PaymentFact[] {
  switch (event.type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return purchaseOf(event.data.object);
    case 'payment_intent.succeeded':
      return [...methodOf(event.data.object, event.created), ...topupOf(event.data.object)];
    case 'payment_intent.payment_failed':
      return failureOf(event.data.object);
    default:
      return [];
  }
}

function purchaseOf(session: Stripe.Checkout.Session): PaymentFact[] {
  const checkoutId = session.metadata?.[METADATA.checkout];
  const { payment_status: status, currency, amount_total: amount } = session;
  if (checkoutId === undefined || status !== 'paid') return [];
  if (currency !== CURRENCY || amount === null) return [];
  return [{ kind: 'purchase_paid', checkoutId, amount }];
}

/** The card of a purchase, which its customer has agreed to save. */
function methodOf(intent: Stripe.PaymentIntent, paidAtSeconds: number): PaymentFact[] {
  const customer = idOf(intent.customer);
  const paymentMethod = idOf(intent.payment_method);
  const isSaved = intent.setup_future_usage === 'off_session';
  if (intent.metadata[METADATA.checkout] === undefined || !isSaved) return [];
  if (customer === undefined || paymentMethod === undefined) return [];
  const savedAt = new Date(paidAtSeconds * 1000);
  return [{ kind: 'method_saved', customer, paymentMethod, savedAt }];
}

function topupOf(intent: Stripe.PaymentIntent): PaymentFact[] {
  const topupId = intent.metadata[METADATA.topup];
  if (topupId === undefined || intent.currency !== CURRENCY) return [];
  return [{ kind: 'topup_paid', topupId, amount: intent.amount_received }];
}

function failureOf(intent: Stripe.PaymentIntent): PaymentFact[] {
  const topupId = intent.metadata[METADATA.topup];
  if (topupId === undefined) return [];
  const { decline_code: decline, code } = intent.last_payment_error ?? {};
  const failure = decline ?? code ?? 'payment_failed';
  return [{ kind: 'topup_failed', topupId, failure, maxFailures: MAX_TOPUP_FAILURES }];
}

function idOf(reference: string | { readonly id: string } | null): string | undefined {
  return typeof reference === 'string' ? reference : reference?.id;
}
