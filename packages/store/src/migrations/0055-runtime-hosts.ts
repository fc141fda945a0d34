import { type Kysely, sql } from 'kysely';

/** The runtime hosts that are alive, for the operator. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table runtime_hosts (
         runtime_host_id uuid primary key,
         name text not null,
         heartbeat_at timestamptz not null default now()
       )`,
    )
    .execute(db);
}
