/** `GET /v1/usage` and `GET /v1/usage/history`. */

import { type Static, Type } from 'typebox';
import { Day } from './day.ts';

export const InfraUsage = Type.Object(
  {
    cpu_seconds: Type.Number({
      description: 'CPU time of the VMs of sandboxes, since each was ready.',
    }),
    sandbox_count: Type.Integer({ description: 'Sandboxes that started.' }),
    credits_used_usd: Type.Number({ description: 'Cost of the usage, in US dollars.' }),
  },
  { title: 'InfraUsage' },
);
export type InfraUsage = Static<typeof InfraUsage>;

export const CurrentUsage = Type.Object(
  {
    tenant_id: Type.String(),
    period: Type.String({
      description: 'The calendar month in UTC: its first day, and the first day of the next month.',
      examples: ['2026-11-01..2026-12-01'],
    }),
    infra_usage: InfraUsage,
    credits: Type.Object({
      balance_usd: Type.Number({ description: 'Usage of less than a cent may be missing in it.' }),
      auto_topup_enabled: Type.Boolean(),
    }),
  },
  { title: 'Usage' },
);
export type CurrentUsage = Static<typeof CurrentUsage>;

export const UsageHistoryQuery = Type.Object({
  from: Type.Optional(Day({ description: 'First day; 30 days ago by default.' })),
  to: Type.Optional(Day({ description: 'The day after the last one; today by default.' })),
});
export type UsageHistoryQuery = Static<typeof UsageHistoryQuery>;

export const UsageHistoryEntry = Type.Object(
  {
    period_start: Day({ description: 'A day in UTC.' }),
    period_end: Day({ description: 'The day after it.' }),
    infra_usage: InfraUsage,
    session_count: Type.Integer({ description: 'Sessions that started.' }),
  },
  { title: 'UsageHistoryEntry' },
);
export type UsageHistoryEntry = Static<typeof UsageHistoryEntry>;

export const UsageHistoryResponse = Type.Object({
  entries: Type.Array(UsageHistoryEntry, {
    description: 'One entry per day, oldest first, also for days without usage.',
  }),
});
export type UsageHistoryResponse = Static<typeof UsageHistoryResponse>;
