import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * Deletes up to `limit` rows of a table that fulfil a condition, and returns their number. Skips rows that another
 * transaction has locked, so that several control planes remove different rows instead of waiting for each other.
 */
export async function removeBatch(
  db: Kysely<Schema>,
  table: keyof Schema,
  condition: RawBuilder<unknown>,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where ctid = any(array(
      select ctid from ${sql.table(table)} where ${condition} limit ${limit} for update skip locked))`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0);
}

/** The time this many seconds ago, by the database's clock. */
export function ago(seconds: number): RawBuilder<Date> {
  return sql<Date>`(now() - make_interval(secs => ${seconds}))`;
}
