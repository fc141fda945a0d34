import { type Kysely, sql } from 'kysely';

/** Waits until no other transaction holds the lock of this name, and holds it until the transaction ends. */
export async function lockName<T>(transaction: Kysely<T>, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(transaction);
}
