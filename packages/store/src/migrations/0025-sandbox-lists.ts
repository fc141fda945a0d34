import { type Kysely, sql } from 'kysely';

/** Indexes for lists of sandboxes, so that they read no old records. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of INDEXES) await sql.raw(statement).execute(db);
}

const INDEXES = [
  `create index sandboxes_tenant_live on sandboxes (tenant_id) where state <> 'destroyed'`,
  `create index sandboxes_tenant_ended on sandboxes (tenant_id, ended_at) where state = 'destroyed'`,
];
