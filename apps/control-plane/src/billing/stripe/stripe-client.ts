import type { Secret } from '@svc/service-kit';
import Stripe from 'stripe';

/** Deadline of one request. */
const TIMEOUT_MS = 10_000;
/** Repetitions of a request after a network failure; the idempotency key makes them safe. */
const RETRIES = 1;

/** Access to an account at Stripe. */
export interface StripeSettings {
  readonly secretKey: Secret;
  /** Origin of Stripe's API; default: Stripe's own. */
  readonly apiBase: string | undefined;
}

/** A client of Stripe's API with a deadline for every request. */
export function openStripe({ secretKey, apiBase }: StripeSettings): Stripe {
  return new Stripe(secretKey.reveal(), {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    ...(apiBase === undefined ? {} : addressOf(apiBase)),
  });
}

function addressOf(apiBase: string) {
  const { protocol, hostname, port } = new URL(apiBase);
  const isPlain = protocol === 'http:';
  return {
    protocol: isPlain ? ('http' as const) : ('https' as const),
    host: hostname,
    port: port === '' ? (isPlain ? 80 : 443) : Number(port),
  };
}
