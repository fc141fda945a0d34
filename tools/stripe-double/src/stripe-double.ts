import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Stripe from 'stripe';
import { IdempotentAnswers } from './idempotency.ts';
import { type Charge, Payments } from './payments.ts';

/** How the server treats the next requests. */
type Mood = 'well' | 'unavailable' | 'cut after the work';

/** The server. Its money is only counted. */
export class StripeDouble implements AsyncDisposable {
  readonly secretKey = 'sk_test_double';
  readonly webhookSecret = 'whsec_double';
  /** `cut after the work`: the request takes effect, but its answer is lost. */
  mood: Mood = 'well';
  readonly #server: Server;
  readonly #payments = new Payments();
  readonly #answers = new IdempotentAnswers();
  #events = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<StripeDouble> {
    const double = new StripeDouble();
    await new Promise<void>((resolve) => double.#server.listen(0, '127.0.0.1', resolve));
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get charges(): readonly Charge[] {
    return this.#payments.charges;
  }

  get customers(): readonly string[] {
    return this.#payments.customers;
  }

  /** Makes payments with this card fail, or succeed again. */
  decline(card: string, code: string | undefined): void {
    if (code === undefined) this.#payments.declined.delete(card);
    else this.#payments.declined.set(card, code);
  }

  /** The customer pays on the page at `url`. Returns the events that Stripe sends afterwards, as JSON texts. */
  pay(url: string, card: string): { readonly completed: string; readonly succeeded: string } {
    const { session, intent } = this.#payments.pay(url.split('/').at(-1) ?? '', card);
    return {
      completed: this.event('checkout.session.completed', session),
      succeeded: this.event('payment_intent.succeeded', intent),
    };
  }

  /** A new event about an object. */
  event(type: string, object: object): string {
    this.#events += 1;
    const id = `evt_${this.#events}`;
    const created = Math.floor(Date.now() / 1000);
    return JSON.stringify({ id, object: 'event', type, created, data: { object } });
  }

  /** The header `Stripe-Signature` of an event that is sent at `at`, in seconds since 1970. */
  sign(payload: string, at = Math.floor(Date.now() / 1000), secret = this.webhookSecret): string {
    const stripe = new Stripe(this.secretKey);
    return stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: at });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const mood = this.mood;
    if (mood === 'unavailable') return void send(response, 503, { error: { type: 'api_error' } });
    if (request.headers.authorization !== `Bearer ${this.secretKey}`) {
      return void send(response, 401, { error: { type: 'invalid_request_error' } });
    }
    const key = request.headers['idempotency-key'];
    const path = request.url ?? '';
    const answer = this.#answers.answer(key?.toString(), path + body, () => {
      const made = this.#payments.create(path, new URLSearchParams(body));
      return made ?? { status: 404, body: { error: { type: 'invalid_request_error' } } };
    });
    if (mood === 'cut after the work') response.destroy();
    else send(response, answer.status, answer.body);
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
