import type { CurrentUsage, UsageHistoryQuery, UsageHistoryResponse } from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** What the tenant has used. At most 15 seconds behind. */
export class Usage {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The usage of the current month in UTC, and the credit. */
  async current(options?: CallOptions): Promise<CurrentUsage> {
    return this.#transport.json({ method: 'GET', path: '/v1/usage', options });
  }

  /** One entry per UTC day from `from`, 30 days ago by default, until the day before `to`, today by default. */
  async history(
    query: UsageHistoryQuery = {},
    options?: CallOptions,
  ): Promise<UsageHistoryResponse> {
    return this.#transport.json({ method: 'GET', path: '/v1/usage/history', query, options });
  }
}
