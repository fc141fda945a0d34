/** The currency of credit. Its smallest unit is a cent. */
export const CURRENCY = 'usd';

/** Names under which Stripe's objects carry the service's ids. */
export const METADATA = {
  tenant: 'svc_tenant',
  checkout: 'svc_checkout',
  topup: 'svc_topup',
} as const;

/** So many failed top-ups in a row disable an account's automatic top-ups. */
export const MAX_TOPUP_FAILURES = 3;
