import { type Kysely, sql } from 'kysely';

/** Counters of wrong one-time codes. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(COUNTERS).execute(db);
}

const COUNTERS = `
  alter table otp_requests drop constraint otp_requests_kind_check;
  alter table otp_requests add constraint otp_requests_kind_check
    check (kind in ('email', 'ip', 'wrong_code'));`;
