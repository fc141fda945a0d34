import type {
  DailyUsageQuery,
  DailyUsageResponse,
  DashboardOverview,
  DashboardSandboxesQuery,
  DashboardSandboxesResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** Sums and lists of what the account has used. Calls with an account token. */
export class Dashboard {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The sums of the current month in UTC. */
  async overview(options?: CallOptions): Promise<DashboardOverview> {
    return this.#transport.json({ method: 'GET', path: '/v1/dashboard/overview', options });
  }

  /** A page of sandboxes with what they used, newest first; 20 by default. */
  async sandboxes(
    query: DashboardSandboxesQuery = {},
    options?: CallOptions,
  ): Promise<DashboardSandboxesResponse> {
    return this.#transport.json({
      method: 'GET',
      path: '/v1/dashboard/sandboxes',
      query,
      options,
    });
  }

  /** One entry per UTC day from `from` to `to`, both included. */
  async dailyUsage(query: DailyUsageQuery, options?: CallOptions): Promise<DailyUsageResponse> {
    return this.#transport.json({
      method: 'GET',
      path: '/v1/dashboard/usage/daily',
      query,
      options,
    });
  }
}
