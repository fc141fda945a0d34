import { type Kysely, sql } from 'kysely';

/** The request that holds an idempotency key; null in rows of earlier versions, which are taken over like others. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table idempotency_keys add column holder uuid`.execute(db);
}
