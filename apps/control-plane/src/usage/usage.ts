import {
  addDays,
  type CurrentUsage,
  type DailyUsageQuery,
  type DailyUsageResponse,
  type DashboardOverview,
  type DashboardSandbox,
  type DashboardSandboxesQuery,
  type DashboardSandboxesResponse,
  dayOf,
  daysBetween,
  type InfraUsage,
  LIMITS,
  type UsageHistoryQuery,
  type UsageHistoryResponse,
} from '@svc/contract';
import type { DayRange, MeteredRow, Store, UsageDay, UsageTotals } from '@svc/store';
import { rejectField } from '../reject-field.ts';

const HISTORY_DAYS = 30;
const MICROUSD = 1_000_000;
const CENTS = 100;
const NOTHING: UsageTotals = {
  cpu_ms: 0,
  input_tokens: 0,
  output_tokens: 0,
  tool_calls: 0,
  cost_microusd: 0,
  sandboxes: 0,
  sessions: 0,
};

/** What tenants have used, from the sums that are kept per day. */
export class Usage {
  readonly #store: Pick<Store, 'usage' | 'billing'>;

  constructor(store: Pick<Store, 'usage' | 'billing'>) {
    this.#store = store;
  }

  /** The current period and the credit. */
  async current(tenantId: string): Promise<CurrentUsage> {
    const { usage, billing } = this.#store;
    const period = monthOf(await usage.today());
    const [totals, balance, autoTopup] = await Promise.all([
      usage.sum(tenantId, period),
      billing.balance(tenantId),
      billing.autoTopup(tenantId),
    ]);
    return {
      tenant_id: tenantId,
      period: `${period.from}..${period.to}`,
      infra_usage: infraUsageOf(totals ?? NOTHING),
      credits: { balance_usd: balance / CENTS, auto_topup_enabled: autoTopup.enabled },
    };
  }

  /** One entry per day, `to` excluded. @throws ServiceError `validation_failed` unless `to` is after `from` */
  async history(tenantId: string, query: UsageHistoryQuery): Promise<UsageHistoryResponse> {
    const today = await this.#store.usage.today();
    const { from = addDays(today, -HISTORY_DAYS), to = today } = query;
    if (to <= from) rejectField('validation_failed', '/to', 'must be after from');
    const entries = (await this.#days(tenantId, { from, to })).map((day) => ({
      period_start: day.day,
      period_end: addDays(day.day, 1),
      infra_usage: infraUsageOf(day),
      session_count: day.sessions,
    }));
    return { entries };
  }

  /** The current period. */
  async overview(tenantId: string): Promise<DashboardOverview> {
    const { usage } = this.#store;
    const totals = (await usage.sum(tenantId, monthOf(await usage.today()))) ?? NOTHING;
    return {
      sandbox_count: totals.sandboxes,
      input_tokens: totals.input_tokens,
      output_tokens: totals.output_tokens,
      cpu_seconds: totals.cpu_ms / 1000,
      billable_tool_calls: totals.tool_calls,
    };
  }

  /** A page of sandboxes with what they used, newest first. */
  async sandboxes(
    tenantId: string,
    { limit = LIMITS.pageDefault, offset = 0 }: DashboardSandboxesQuery,
  ): Promise<DashboardSandboxesResponse> {
    const { rows, total } = await this.#store.usage.listSandboxes(tenantId, { limit, offset });
    return { sandboxes: rows.map(listItemOf), total };
  }

  /** One entry per day, `to` included. @throws ServiceError `validation_failed` if `to` is before `from` */
  async daily(tenantId: string, { from, to }: DailyUsageQuery): Promise<DailyUsageResponse> {
    if (to < from) rejectField('validation_failed', '/to', 'must not be before from');
    const days = await this.#days(tenantId, { from, to: addDays(to, 1) });
    const entries = days.map(({ day, input_tokens, output_tokens, cpu_ms }) => {
      return { day, input_tokens, output_tokens, cpu_seconds: cpu_ms / 1000 };
    });
    return { entries };
  }

  /** Every day of the range, also those without usage. */
  async #days(tenantId: string, range: DayRange): Promise<UsageDay[]> {
    const count = daysBetween(range.from, range.to);
    if (count > LIMITS.usageDaysMax) {
      rejectField('validation_failed', '/to', `must be at most ${LIMITS.usageDaysMax} days later`);
    }
    const used = new Map(
      (await this.#store.usage.days(tenantId, range)).map((day) => [day.day, day]),
    );
    return Array.from({ length: count }, (_, index) => {
      const day = addDays(range.from, index);
      return used.get(day) ?? { ...NOTHING, day };
    });
  }
}

/** The calendar month of a day. */
function monthOf(day: string): DayRange {
  const date = new Date(day);
  const first = (months: number) =>
    dayOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1));
  return { from: first(0), to: first(1) };
}

function infraUsageOf({ cpu_ms, sandboxes, cost_microusd }: UsageTotals): InfraUsage {
  return {
    cpu_seconds: cpu_ms / 1000,
    sandbox_count: sandboxes,
    credits_used_usd: cost_microusd / MICROUSD,
  };
}

function listItemOf(row: MeteredRow): DashboardSandbox {
  return {
    vm_id: row.vm_id,
    ...(row.session_id === null ? {} : { chat_session_id: row.session_id }),
    template: row.template,
    ...(row.agent === null ? {} : { agent: row.agent }),
    state: row.state,
    created_at: row.created_at.toISOString(),
    ...(row.ended_at === null ? {} : { ended_at: row.ended_at.toISOString() }),
    ...(row.end_reason === null ? {} : { end_reason: row.end_reason }),
    duration_seconds: row.duration_seconds,
    cpu_seconds: row.cpu_ms / 1000,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_usd: row.cost_microusd / MICROUSD,
  };
}
