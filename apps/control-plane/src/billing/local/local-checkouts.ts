import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { DerivedKeys } from '../../crypto/cluster-secrets.ts';
import type { PaymentProvider, Purchase } from '../payments.ts';

const TOKEN_BYTES = 32;
const LIFETIME_SECONDS = 1_800;
/** Longest token that a link can contain. */
export const TOKEN_CHARS = 64;

/** Path of the page on which a local checkout is confirmed. */
export const LOCAL_CHECKOUT_PATH = '/billing/checkout';

/** A checkout as its page shows it. */
export interface LocalCheckout {
  /** Cents. */
  readonly amount: number;
  readonly paid: boolean;
  /** Proves that a confirmation comes from the page. */
  readonly formToken: string;
}

interface LocalCheckoutsParts {
  readonly ledger: Store['billing'];
  /** Public URL of the control plane. */
  readonly baseUrl: () => string;
  /** Keys of the form tokens, the same on every control plane: the first makes them, each is accepted. */
  readonly formKeys: DerivedKeys;
}

/**
 * Purchases without a payment provider: whoever has the link to the page may credit the account that asked for it, once.
 * The link contains a random token of which only the hash is stored, and expires after half an hour.
 */
export class LocalCheckouts implements PaymentProvider {
  readonly #parts: LocalCheckoutsParts;

  constructor(parts: LocalCheckoutsParts) {
    this.#parts = parts;
  }

  async checkout({ tenantId, amount }: Purchase): Promise<string> {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    await this.#parts.ledger.beginCheckout({
      checkoutId: uuidv7(),
      tenantId,
      provider: 'local',
      amount,
      pageHash: hash(token),
      lifetimeSeconds: LIFETIME_SECONDS,
    });
    return `${this.#parts.baseUrl()}${LOCAL_CHECKOUT_PATH}?token=${token}`;
  }

  /** @throws ServiceError `checkout_not_found` */
  async find(token: string): Promise<LocalCheckout> {
    const { checkoutId, amount, paid } = await this.#open(token);
    return { amount, paid, formToken: formToken(checkoutId, this.#parts.formKeys[0]) };
  }

  /** Credits the account; a repeated confirmation has no effect. @throws ServiceError `checkout_not_found` */
  async confirm(token: string, given: string): Promise<void> {
    const { checkoutId, amount } = await this.#open(token);
    if (!this.#parts.formKeys.some((key) => isSame(given, formToken(checkoutId, key)))) {
      throw new ServiceError('checkout_not_found');
    }
    await this.#parts.ledger.payCheckout({ checkoutId, provider: 'local', amount });
  }

  async #open(token: string) {
    const checkout = await this.#parts.ledger.findCheckout(hash(token));
    if (checkout === undefined) throw new ServiceError('checkout_not_found');
    return checkout;
  }
}

function formToken(checkoutId: string, key: Buffer): string {
  return createHmac('sha256', key).update(checkoutId).digest('base64url');
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(hash(given), hash(expected));
}
