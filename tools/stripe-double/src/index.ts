/**
 * A local server that speaks the part of Stripe's API that the service uses, for tests: customers, Checkout Sessions,
 * payment intents, idempotency keys, and signed events.
 */
export type { Charge } from './payments.ts';
export { StripeDouble } from './stripe-double.ts';
