import {
  type AutoTopupConfig,
  type BalanceResponse,
  LIMITS,
  type TransactionsQuery,
  type TransactionsResponse,
} from '@svc/contract';
import type { Store } from '@svc/store';
import { rejectField } from '../reject-field.ts';

/** The money of an account: its balance, its transactions and its settings. */
export class Billing {
  readonly #ledger: Store['billing'];

  constructor(ledger: Store['billing']) {
    this.#ledger = ledger;
  }

  async balance(tenantId: string): Promise<BalanceResponse> {
    return { credit_balance: await this.#ledger.balance(tenantId) };
  }

  async transactions(tenantId: string, query: TransactionsQuery): Promise<TransactionsResponse> {
    const { limit = LIMITS.pageDefault, offset = 0 } = query;
    const entries = await this.#ledger.list(tenantId, { limit, offset });
    const transactions = entries.map(({ id, amount, description, createdAt }) => ({
      id,
      amount,
      description,
      timestamp: createdAt.toISOString(),
    }));
    return { transactions };
  }

  async autoTopup(tenantId: string): Promise<AutoTopupConfig> {
    const { enabled, threshold, amount } = await this.#ledger.autoTopup(tenantId);
    return { enabled, threshold_amount: threshold, topup_amount: amount };
  }

  /** @throws ServiceError `validation_failed` when enabled with an amount too small to charge */
  async setAutoTopup(tenantId: string, config: AutoTopupConfig): Promise<void> {
    const { enabled, threshold_amount: threshold, topup_amount: amount } = config;
    if (enabled && amount < LIMITS.paymentCentsMin) {
      const message = `must be at least ${LIMITS.paymentCentsMin} when enabled`;
      rejectField('validation_failed', '/topup_amount', message);
    }
    await this.#ledger.setAutoTopup(tenantId, { enabled, threshold, amount });
  }
}
