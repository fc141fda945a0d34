import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema } from '../schema.ts';

/** A request to count against a tenant's budget. */
export interface BudgetRequest {
  /** Name of the budget, such as `templates`. */
  readonly budget: string;
  readonly tenantId: string;
  readonly maxPerWindow: number;
  readonly windowSeconds: number;
}

/** The state of a budget after a request was counted. */
export interface BudgetState {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the window ends and the budget is reset. At least 1. */
  readonly resetSeconds: number;
}

/** Counts the requests of each tenant, for all control planes together. */
export class RequestBudgetRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Counts a request. A window begins with a tenant's first request after the end of the previous window. */
  async count(request: BudgetRequest): Promise<BudgetState> {
    const { budget, tenantId, maxPerWindow, windowSeconds } = request;
    const windowEnd = sql`now() + make_interval(secs => ${windowSeconds})`;
    // The counter stops at one more than allowed, which means "refused".
    const { rows } = await sql<{ used: number; seconds: number }>`
      insert into request_budgets as counter (budget, tenant_id, used, window_ends_at)
      values (${budget}, ${tenantId}, 1, ${windowEnd})
      on conflict (budget, tenant_id) do update set
        used = case when counter.window_ends_at <= now() then 1
          else least(counter.used, ${maxPerWindow}) + 1 end,
        window_ends_at = case when counter.window_ends_at <= now() then ${windowEnd}
          else counter.window_ends_at end
      returning used, ceil(extract(epoch from window_ends_at - now()))::int as seconds`.execute(
      this.#db,
    );
    const { used, seconds } = rows[0] ?? { used: maxPerWindow + 1, seconds: windowSeconds };
    return {
      allowed: used <= maxPerWindow,
      remaining: Math.max(0, maxPerWindow - used),
      resetSeconds: Math.max(1, seconds),
    };
  }

  /** Removes up to `limit` counters whose window ended longer ago than this. Returns their number. */
  removeExpired(olderThanSeconds: number, limit: number): Promise<number> {
    const isOver = sql`window_ends_at < ${ago(olderThanSeconds)}`;
    return removeBatch(this.#db, 'request_budgets', isOver, limit);
  }
}
