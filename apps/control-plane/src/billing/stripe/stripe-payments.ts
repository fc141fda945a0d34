import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import type Stripe from 'stripe';
import { uuidv7 } from 'uuidv7';
import type { PaymentProvider, Purchase } from '../payments.ts';
import { CURRENCY, METADATA } from './vocabulary.ts';

/** Stripe ends an unpaid Checkout Session after this time. */
const LIFETIME_SECONDS = 86_400;

interface StripePaymentsParts {
  readonly stripe: Stripe;
  readonly store: Pick<Store, 'billing' | 'tenants'>;
  /** Public URL of the control plane. */
  readonly baseUrl: () => string;
}

/**
 * Purchases on Stripe's own page. The customer's card is saved for automatic top-ups. The purchase is on record before
 * Stripe hears of it, so that an event about it always finds it.
 */
export class StripePayments implements PaymentProvider {
  readonly #parts: StripePaymentsParts;

  constructor(parts: StripePaymentsParts) {
    this.#parts = parts;
  }

  /** @throws ServiceError `payment_provider_unavailable` */
  async checkout({ tenantId, amount }: Purchase): Promise<string> {
    const { store } = this.#parts;
    const customer = await this.#customer(tenantId);
    const checkoutId = uuidv7();
    await store.billing.beginCheckout({
      checkoutId,
      tenantId,
      provider: 'stripe',
      amount,
      lifetimeSeconds: LIFETIME_SECONDS,
    });
    const session = await this.#openSession(checkoutId, customer, amount);
    await store.billing.noteProviderId(checkoutId, session.id);
    if (session.url === null) throw new ServiceError('payment_provider_unavailable');
    return session.url;
  }

  #openSession(checkoutId: string, customer: string, amount: number) {
    const { stripe, baseUrl } = this.#parts;
    const returnUrl = `${baseUrl()}/billing/return`;
    const metadata = { [METADATA.checkout]: checkoutId };
    return available(
      stripe.checkout.sessions.create(
        {
          mode: 'payment',
          customer,
          client_reference_id: checkoutId,
          metadata,
          allowed_payment_method_types: ['card'],
          payment_intent_data: { setup_future_usage: 'off_session', metadata },
          line_items: [
            {
              quantity: 1,
              price_data: {
                currency: CURRENCY,
                unit_amount: amount,
                product_data: { name: 'Credit' },
              },
            },
          ],
          success_url: returnUrl,
          cancel_url: returnUrl,
        },
        { idempotencyKey: `svc-checkout-${checkoutId}` },
      ),
    );
  }

  /** The tenant's customer at Stripe, made at the first purchase. */
  async #customer(tenantId: string): Promise<string> {
    const { stripe, store } = this.#parts;
    const known = await store.billing.findCustomer(tenantId);
    if (known !== undefined) return known;
    const tenant = await store.tenants.find(tenantId);
    if (tenant === undefined) throw new ServiceError('unauthorized');
    const { id } = await available(
      stripe.customers.create(
        { email: tenant.email, metadata: { [METADATA.tenant]: tenantId } },
        { idempotencyKey: `svc-customer-${tenantId}` },
      ),
    );
    return store.billing.noteCustomer(tenantId, id);
  }
}

async function available<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    throw new ServiceError('payment_provider_unavailable', undefined, { cause });
  }
}
