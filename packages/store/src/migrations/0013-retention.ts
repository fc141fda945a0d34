import { type Kysely, sql } from 'kysely';

/** The erasure of what sessions keep, indexes by which expired rows are found, and workers that are going away. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [ERASURE, INDEXES, DRAINING]) await sql.raw(statement).execute(db);
}

const ERASURE = `
  alter table sessions
    -- From then on the session cannot be resumed.
    add column erase_requested_at timestamptz(3),
    -- From then on nothing may be added to it.
    add column erased_at timestamptz(3);`;

const INDEXES = `
  create index sessions_kept on sessions (ended_at) where ended_at is not null and erased_at is null;
  create index sessions_erasing on sessions (erase_requested_at)
    where erase_requested_at is not null and erased_at is null;
  create index sandboxes_ended on sandboxes (ended_at) where state = 'destroyed';
  create index audit_records_created on audit_records (created_at);`;

const DRAINING = `
  -- Ends its sandboxes and gets no new ones.
  alter table workers add column draining boolean not null default false;`;
