import { type Kysely, sql } from 'kysely';

/** When the saved payment method was saved, so that an older event does not bring another one back. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw('alter table billing_accounts add column payment_method_at timestamptz(3)')
    .execute(db);
}
