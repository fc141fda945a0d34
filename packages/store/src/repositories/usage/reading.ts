import { type Kysely, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';

/** What a tenant used in some time. */
export interface UsageTotals {
  readonly cpu_ms: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly tool_calls: number;
  readonly cost_microusd: number;
  /** Sandboxes, and sessions, that started. */
  readonly sandboxes: number;
  readonly sessions: number;
}

/** The usage of one UTC day, `YYYY-MM-DD`. */
export type UsageDay = UsageTotals & { readonly day: string };

/** A time from one UTC day until another, which is not part of it. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

const COLUMNS = [
  'cpu_ms',
  'input_tokens',
  'output_tokens',
  'tool_calls',
  'cost_microusd',
  'sandboxes',
  'sessions',
] as const satisfies (keyof UsageTotals)[];
/** As numbers: what one tenant can use is far below the largest exact one. */
const VALUES = sql.join(COLUMNS.map((name) => sql`${sql.ref(name)}::float8 as ${sql.ref(name)}`));
const SUMS = sql.join(
  COLUMNS.map((name) => sql`coalesce(sum(${sql.ref(name)}), 0)::float8 as ${sql.ref(name)}`),
);

/** The UTC date of the database's clock, which also decides on which day usage counts. */
export async function readToday(db: Kysely<Schema>): Promise<string> {
  const { rows } = await sql<{ today: string }>`
    select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('the database returned no date');
  return row.today;
}

/** The sums of a tenant in a time. */
export async function sumDays(
  db: Kysely<Schema>,
  tenantId: string,
  { from, to }: DayRange,
): Promise<UsageTotals | undefined> {
  const { rows } = await sql<UsageTotals>`
    select ${SUMS} from usage_days
    where tenant_id = ${tenantId} and day >= ${from}::date and day < ${to}::date`.execute(db);
  return rows[0];
}

/** The days of a time on which a tenant used anything, oldest first. */
export async function listDays(
  db: Kysely<Schema>,
  tenantId: string,
  { from, to }: DayRange,
): Promise<UsageDay[]> {
  const { rows } = await sql<UsageDay>`
    select to_char(day, 'YYYY-MM-DD') as day, ${VALUES} from usage_days
    where tenant_id = ${tenantId} and day >= ${from}::date and day < ${to}::date
    order by usage_days.day`.execute(db);
  return rows;
}

/** A sandbox with what it used. */
export type MeteredRow = Pick<
  SandboxRow,
  'vm_id' | 'session_id' | 'template' | 'agent' | 'state' | 'created_at' | 'ended_at' | 'end_reason'
> & {
  readonly duration_seconds: number;
} & Pick<UsageTotals, 'cpu_ms' | 'input_tokens' | 'output_tokens' | 'cost_microusd'>;

/** A page of the sandboxes of a tenant that have a record, newest first, and the number of all. */
export async function listMetered(
  db: Kysely<Schema>,
  tenantId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ readonly rows: MeteredRow[]; readonly total: number }> {
  const { rows } = await sql<MeteredRow>`
    select page.vm_id, session_id, template, agent, state, created_at, ended_at, end_reason,
      greatest(0, extract(epoch from coalesce(ended_at, now()) - created_at))::float8
        as duration_seconds,
      coalesce(cpu_ms, 0)::float8 as cpu_ms, coalesce(input_tokens, 0)::float8 as input_tokens,
      coalesce(output_tokens, 0)::float8 as output_tokens,
      coalesce(cost_microusd, 0)::float8 as cost_microusd
    from (
      select * from sandboxes where tenant_id = ${tenantId}
      order by created_at desc, vm_id desc limit ${limit} offset ${offset}
    ) page left join usage_meters meter
      on meter.vm_id = page.vm_id and meter.generation = page.generation
    order by created_at desc, page.vm_id desc`.execute(db);
  const counted = await sql<{ total: number }>`
    select count(*)::int as total from sandboxes where tenant_id = ${tenantId}`.execute(db);
  return { rows, total: counted.rows[0]?.total ?? 0 };
}
