import { type Kysely, sql } from 'kysely';

/** Reservations of the numbers of frames, so that none is used twice. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table sessions
      -- Whoever may number frames; null in sessions that started before this column.
      add column numbered_by uuid,
      -- The number before its first one.
      add column base_seq bigint not null default 0,
      -- The highest number that it, or any earlier one, may have shown.
      add column reserved_seq bigint not null default 0`.execute(db);
}
