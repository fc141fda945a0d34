import type { Route } from '../../services.ts';
import { getBalance } from './balance.ts';
import { createCheckout } from './checkout.ts';
import { confirmLocalCheckout } from './confirm-local-checkout.ts';
import { getAutoTopup } from './get-auto-topup.ts';
import { localCheckoutPage } from './local-checkout-page.ts';
import { returnPage } from './return-page.ts';
import { setAutoTopup } from './set-auto-topup.ts';
import { stripeWebhook } from './stripe-webhook.ts';
import { listTransactions } from './transactions.ts';

export const billingRoutes: readonly Route[] = [
  getBalance,
  listTransactions,
  getAutoTopup,
  setAutoTopup,
  createCheckout,
  localCheckoutPage,
  confirmLocalCheckout,
  returnPage,
  stripeWebhook,
];
