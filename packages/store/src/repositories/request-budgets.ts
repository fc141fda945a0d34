import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** A request that is counted against a tenant's budget. */
export interface BudgetRequest {
  /** What is limited, such as `templates`. */
  readonly budget: string;
  readonly tenantId: string;
  readonly mostPerWindow: number;
  readonly windowSeconds: number;
}

/** What is left of a budget after a request was counted. */
export interface BudgetState {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the window ends and the budget is whole again, at least 1. */
  readonly resetSeconds: number;
}

/** How many requests of a kind each tenant makes, counted for all control planes together. */
export class RequestBudgetRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Counts a request. A tenant's window begins with its first request after the last window's end. */
  async count(request: BudgetRequest): Promise<BudgetState> {
    const { budget, tenantId, mostPerWindow, windowSeconds } = request;
    const windowEnd = sql`now() + make_interval(secs => ${windowSeconds})`;
    // One more than allowed says "refused"; counting further would only make the number large.
    const { rows } = await sql<{ used: number; seconds: number }>`
      insert into request_budgets as counter (budget, tenant_id, used, window_ends_at)
      values (${budget}, ${tenantId}, 1, ${windowEnd})
      on conflict (budget, tenant_id) do update set
        used = case when counter.window_ends_at <= now() then 1
          else least(counter.used, ${mostPerWindow}) + 1 end,
        window_ends_at = case when counter.window_ends_at <= now() then ${windowEnd}
          else counter.window_ends_at end
      returning used, ceil(extract(epoch from window_ends_at - now()))::int as seconds`.execute(
      this.#db,
    );
    const { used, seconds } = rows[0] ?? { used: mostPerWindow + 1, seconds: windowSeconds };
    return {
      allowed: used <= mostPerWindow,
      remaining: Math.max(0, mostPerWindow - used),
      resetSeconds: Math.max(1, seconds),
    };
  }

  /** Removes counters whose window has ended. */
  async removeExpired(): Promise<void> {
    await sql`delete from request_budgets where window_ends_at < now()`.execute(this.#db);
  }
}
