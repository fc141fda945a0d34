import { type Kysely, sql } from 'kysely';

/**
 * Usage: the last accepted counters of each sandbox, the differences between accepted counters, which billing posts,
 * and their sums per tenant and UTC day, which everything else reads.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [METERS, RECORDS, DAYS]) await sql.raw(statement).execute(db);
}

const COUNTERS = ['cpu_ms', 'wall_ms', 'input_tokens', 'output_tokens', 'tool_calls']
  .map((name) => `${name} bigint not null default 0 check (${name} >= 0)`)
  .join(',\n    ');

const COST = `cost_microusd numeric(30, 0) not null default 0 check (cost_microusd >= 0)`;

const METERS = `
  create table usage_meters (
    vm_id text not null references sandboxes on delete cascade,
    generation integer not null,
    tenant_id text not null references tenants,
    seq bigint not null default 0,
    ${COUNTERS},
    ${COST},
    cost_rest integer not null default 0,
    used_at timestamptz(3),
    primary key (vm_id, generation)
  );`;

// No reference to the sandbox, whose row is removed earlier.
const RECORDS = `
  create table usage_records (
    vm_id text not null,
    generation integer not null,
    seq bigint not null,
    tenant_id text not null references tenants,
    ${COUNTERS},
    ${COST},
    used_at timestamptz(3) not null,
    posted_entry text,
    created_at timestamptz(3) not null default now(),
    primary key (vm_id, generation, seq)
  );
  create index usage_records_unposted on usage_records (tenant_id) where posted_entry is null;`;

const DAYS = `
  create table usage_days (
    tenant_id text not null references tenants,
    day date not null,
    ${COUNTERS},
    ${COST},
    sandboxes integer not null default 0,
    sessions integer not null default 0,
    primary key (tenant_id, day)
  );`;
