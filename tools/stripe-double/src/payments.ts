import type { ApiAnswer } from './idempotency.ts';

/** Money that was taken from a payment method. */
export interface Charge {
  readonly intent: string;
  /** Cents. */
  readonly amount: number;
  readonly metadata: Readonly<Record<string, string>>;
}

interface Session {
  readonly id: string;
  readonly customer: string;
  readonly amount: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The objects of the account and the money that it has received. */
export class Payments {
  readonly charges: Charge[] = [];
  readonly customers: string[] = [];
  readonly sessions = new Map<string, Session>();
  /** Decline codes of payment methods that are declined. */
  readonly declined = new Map<string, string>();
  #made = 0;

  /** Answers a request. Undefined for one that the double does not know. */
  create(path: string, fields: URLSearchParams): ApiAnswer | undefined {
    switch (path) {
      case '/v1/customers':
        return this.#createCustomer(fields);
      case '/v1/checkout/sessions':
        return this.#createSession(fields);
      case '/v1/payment_intents':
        return this.#createIntent(fields);
      default:
        return undefined;
    }
  }

  /** The customer pays a Checkout Session with a card. Returns Stripe's objects of the session and of the payment. */
  pay(sessionId: string, card: string): { readonly session: object; readonly intent: object } {
    const session = this.sessions.get(sessionId);
    if (session === undefined) throw new Error(`There is no session ${sessionId}.`);
    const { customer, amount, metadata } = session;
    const intent = this.#charge(amount, metadata, customer, card, 'off_session');
    return {
      intent,
      session: {
        ...session,
        object: 'checkout.session',
        status: 'complete',
        payment_status: 'paid',
        currency: 'usd',
        amount_total: amount,
      },
    };
  }

  #createCustomer(fields: URLSearchParams): ApiAnswer {
    const id = this.#newId('cus');
    this.customers.push(id);
    return ok({ id, object: 'customer', email: fields.get('email') });
  }

  #createSession(fields: URLSearchParams): ApiAnswer {
    const session = {
      id: this.#newId('cs'),
      customer: fields.get('customer') ?? '',
      amount: Number(fields.get('line_items[0][price_data][unit_amount]')),
      metadata: metadataOf(fields),
    };
    this.sessions.set(session.id, session);
    const url = `https://checkout.stripe.test/${session.id}`;
    return ok({ ...session, object: 'checkout.session', status: 'open', url });
  }

  #createIntent(fields: URLSearchParams): ApiAnswer {
    const card = fields.get('payment_method') ?? '';
    const decline = this.declined.get(card);
    if (decline !== undefined) {
      const error = { type: 'card_error', code: 'card_declined', decline_code: decline };
      return { status: 402, body: { error: { ...error, message: 'Your card was declined.' } } };
    }
    const amount = Number(fields.get('amount'));
    return ok(this.#charge(amount, metadataOf(fields), fields.get('customer') ?? '', card, null));
  }

  #charge(
    amount: number,
    metadata: Readonly<Record<string, string>>,
    customer: string,
    card: string,
    setup: string | null,
  ): object {
    const id = this.#newId('pi');
    this.charges.push({ intent: id, amount, metadata });
    return {
      id,
      object: 'payment_intent',
      status: 'succeeded',
      amount,
      amount_received: amount,
      currency: 'usd',
      customer,
      payment_method: card,
      setup_future_usage: setup,
      metadata,
    };
  }

  #newId(prefix: string): string {
    this.#made += 1;
    return `${prefix}_${this.#made}`;
  }
}

function ok(body: object): ApiAnswer {
  return { status: 200, body };
}

function metadataOf(fields: URLSearchParams): Record<string, string> {
  const entries = [...fields].flatMap(([name, value]) => {
    const key = /^metadata\[(\w+)\]$/.exec(name)?.[1];
    return key === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(entries);
}
