import { createHash } from 'node:crypto';
import { LOCAL_CHECKOUT_PATH, type LocalCheckout } from './local-checkouts.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  main { max-width: 32rem; margin: 4rem auto; padding: 0 1rem; }
  button { font: inherit; padding: 0.5rem 1rem; }`;

/** No script, no other origin, and this one style only. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page of a local checkout. The tokens consist of characters that HTML does not interpret. */
export function renderCheckout(token: string, { amount, paid, formToken }: LocalCheckout): string {
  const dollars = `$${(amount / 100).toFixed(2)}`;
  if (paid) return page('Credit added', `<p>The account has been credited with ${dollars}.</p>`);
  return page(
    'Add credit',
    `<p>No payment provider is configured on this installation, so nothing is charged.</p>
<form method="post" action="${LOCAL_CHECKOUT_PATH}">
<input type="hidden" name="token" value="${token}">
<input type="hidden" name="form_token" value="${formToken}">
<button>Credit the account with ${dollars}</button></form>`,
  );
}

/** The page to which a payment provider sends customers back. */
export function renderReturn(): string {
  return page(
    'Back from the payment',
    '<p>The credit appears in the account as soon as the payment provider has confirmed the payment. You can close this page.</p>',
  );
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>${title}</title>
<style>${STYLE}</style></head><body><main><h1>${title}</h1>
${body}
</main></body></html>`;
}
