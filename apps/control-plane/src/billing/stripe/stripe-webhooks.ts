import type { Secret } from '@svc/service-kit';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type Stripe from 'stripe';
import { readWebhook } from './webhook.ts';

interface StripeWebhooksParts {
  readonly stripe: Stripe;
  readonly secret: Secret;
  readonly ledger: Store['billing'];
  readonly logger: FastifyBaseLogger;
}

/** Applies what Stripe reports, each event once. */
export class StripeWebhooks {
  readonly #parts: StripeWebhooksParts;

  constructor(parts: StripeWebhooksParts) {
    this.#parts = parts;
  }

  /** @throws ServiceError `webhook_signature_invalid` */
  async receive(body: Buffer, signature: string | undefined): Promise<void> {
    const { stripe, secret, ledger, logger } = this.#parts;
    const event = readWebhook(stripe, secret, body, signature);
    if (event === undefined) return;
    const outcome = await ledger.applyEvent(event);
    const { eventId, type } = event;
    if (outcome === 'unmatched') {
      logger.error({ eventId, type }, 'the payment provider reports money for no open payment');
    }
  }
}
