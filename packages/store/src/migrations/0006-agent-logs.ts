import { type Kysely, sql } from 'kysely';

/** The logs of agents whose sandboxes have ended, so that they outlast the workers. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table agent_logs (
      vm_id text primary key references sandboxes on delete cascade,
      -- The end of the log. Bytes, for text refuses NUL and an agent may write anything.
      tail bytea not null,
      total_bytes bigint not null
    )`.execute(db);
}
