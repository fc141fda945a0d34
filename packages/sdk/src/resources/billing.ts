import type {
  AutoTopupConfig,
  BalanceResponse,
  BillingTransaction,
  CheckoutResponse,
  TransactionsQuery,
  TransactionsResponse,
  UpdateAutoTopupResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** The credit of an account; needs an account token. Amounts are in cents. */
export class Billing {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The balance, which usage can make negative. */
  async balance(options?: CallOptions): Promise<number> {
    const answer = await this.#transport.json<BalanceResponse>({
      method: 'GET',
      path: '/v1/billing/balance',
      options,
    });
    return answer.credit_balance;
  }

  /** One page of the transactions, newest first. */
  async transactions(
    query: TransactionsQuery = {},
    options?: CallOptions,
  ): Promise<BillingTransaction[]> {
    const answer = await this.#transport.json<TransactionsResponse>({
      method: 'GET',
      path: '/v1/billing/transactions',
      query,
      options,
    });
    return answer.transactions;
  }

  /** Begins a purchase. The customer pays on the page at the `url` of the result. */
  async checkout(creditAmount: number, options?: CallOptions): Promise<CheckoutResponse> {
    return this.#transport.json({
      method: 'POST',
      path: '/v1/billing/checkout',
      json: { credit_amount: creditAmount },
      options,
    });
  }

  /** The settings of automatic top-ups. */
  async autoTopup(options?: CallOptions): Promise<AutoTopupConfig> {
    return this.#transport.json({ method: 'GET', path: '/v1/billing/auto-topup', options });
  }

  /** Replaces the settings of automatic top-ups. */
  async setAutoTopup(
    config: AutoTopupConfig,
    options?: CallOptions,
  ): Promise<UpdateAutoTopupResponse> {
    return this.#transport.json({
      method: 'PUT',
      path: '/v1/billing/auto-topup',
      json: config,
      options,
    });
  }
}
