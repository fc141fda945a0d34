/** `/v1/dashboard/*`. */

import { type Static, Type } from 'typebox';
import { AGENTS } from '../agents.ts';
import { SandboxId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { Timestamp } from '../schema.ts';
import { END_REASONS, SANDBOX_STATES } from '../states.ts';
import { Day } from './day.ts';

export const DashboardOverview = Type.Object(
  {
    sandbox_count: Type.Number({ description: 'Sandboxes that started.' }),
    input_tokens: Type.Number(),
    output_tokens: Type.Number(),
    cpu_seconds: Type.Number(),
    billable_tool_calls: Type.Number({ description: 'Tools that agents called.' }),
  },
  { title: 'DashboardOverview', description: 'Usage of the current calendar month in UTC.' },
);
export type DashboardOverview = Static<typeof DashboardOverview>;

export const DashboardSandboxesQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: LIMITS.pageDefault }),
  ),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
});
export type DashboardSandboxesQuery = Static<typeof DashboardSandboxesQuery>;

export const DashboardSandbox = Type.Object(
  {
    vm_id: SandboxId,
    chat_session_id: Type.Optional(Type.String({ description: 'The session that it belongs to.' })),
    template: Type.String(),
    agent: Type.Optional(Type.Enum([...AGENTS])),
    state: Type.Enum([...SANDBOX_STATES]),
    created_at: Timestamp,
    ended_at: Type.Optional(Timestamp),
    end_reason: Type.Optional(Type.Enum([...END_REASONS])),
    duration_seconds: Type.Number({
      description: 'From its creation until its end, or until now.',
    }),
    cpu_seconds: Type.Number(),
    input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
    cost_usd: Type.Number(),
  },
  { title: 'DashboardSandbox' },
);
export type DashboardSandbox = Static<typeof DashboardSandbox>;

export const DashboardSandboxesResponse = Type.Object({
  sandboxes: Type.Array(DashboardSandbox, { description: 'Newest first.' }),
  total: Type.Integer(),
});
export type DashboardSandboxesResponse = Static<typeof DashboardSandboxesResponse>;

export const DailyUsageQuery = Type.Object({
  from: Day({ description: 'First day.' }),
  to: Day({ description: 'Last day.' }),
});
export type DailyUsageQuery = Static<typeof DailyUsageQuery>;

export const DailyUsageEntry = Type.Object(
  {
    day: Day({ description: 'A day in UTC.' }),
    input_tokens: Type.Integer(),
    output_tokens: Type.Integer(),
    cpu_seconds: Type.Number(),
  },
  { title: 'DailyUsageEntry' },
);
export type DailyUsageEntry = Static<typeof DailyUsageEntry>;

export const DailyUsageResponse = Type.Object({
  entries: Type.Array(DailyUsageEntry, {
    description: 'One entry per day, oldest first, also for days without usage.',
  }),
});
export type DailyUsageResponse = Static<typeof DailyUsageResponse>;
