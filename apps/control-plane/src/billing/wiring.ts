import type { Config } from '@svc/config';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { DerivedKeys } from '../crypto/cluster-secrets.ts';
import type { Fleet } from '../workers/fleet.ts';
import { CreditEnforcer } from './credit-enforcer.ts';
import { LocalCheckouts } from './local/local-checkouts.ts';
import type { PaymentProvider } from './payments.ts';
import { AutoTopups } from './stripe/auto-topups.ts';
import { openStripe } from './stripe/stripe-client.ts';
import { StripePayments } from './stripe/stripe-payments.ts';
import { StripeWebhooks } from './stripe/stripe-webhooks.ts';
import { BillingUpkeep } from './upkeep.ts';

/** The ways to pay. */
export interface Payments {
  /** The one that new purchases use. */
  readonly provider: PaymentProvider;
  readonly local: LocalCheckouts;
  /** Undefined without Stripe. */
  readonly webhooks: StripeWebhooks | undefined;
}

interface PaymentParts {
  readonly config: Config;
  readonly store: Store;
  readonly fleet: Fleet;
  readonly logger: FastifyBaseLogger;
  /** Public URL of the control plane. */
  readonly baseUrl: () => string;
  /** Keys of the tokens in the forms of local checkouts. */
  readonly formKeys: DerivedKeys;
}

/** Builds the payments and their upkeep: through Stripe if it is configured, otherwise without a provider. */
export function createPayments(parts: PaymentParts): {
  readonly payments: Payments;
  readonly upkeep: BillingUpkeep;
} {
  const { config, store, fleet, logger, baseUrl, formKeys } = parts;
  const local = new LocalCheckouts({ ledger: store.billing, baseUrl, formKeys });
  const stripe = stripeParts(parts);
  const enforcer = config.billingEnforce ? new CreditEnforcer({ store, fleet, logger }) : undefined;
  const upkeep = new BillingUpkeep({
    ledger: store.billing,
    grantCents: config.signupGrantCents,
    topups: stripe?.topups,
    enforcer,
    logger,
  });
  const provider = stripe?.provider ?? local;
  return { payments: { provider, local, webhooks: stripe?.webhooks }, upkeep };
}

function stripeParts({ config, store, logger, baseUrl }: PaymentParts) {
  const { stripeSecretKey: secretKey, stripeWebhookSecret: webhookSecret } = config;
  if (secretKey === undefined || webhookSecret === undefined) return undefined;
  const stripe = openStripe({ secretKey, apiBase: config.stripeApiBase });
  const ledger = store.billing;
  return {
    provider: new StripePayments({ stripe, store, baseUrl }),
    topups: new AutoTopups({ stripe, ledger, logger }),
    webhooks: new StripeWebhooks({ stripe, secret: webhookSecret, ledger, logger }),
  };
}
