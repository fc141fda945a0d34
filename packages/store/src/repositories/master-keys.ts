import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../schema.ts';

/** Which master key wraps new data keys. The keys themselves are never in the database, only their ids. */
export class MasterKeyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Id of the current master key; undefined before the first one. */
  async current(): Promise<string | undefined> {
    const row = await this.#db
      .selectFrom('master_keys')
      .select('key_id')
      .where('current', '=', true)
      .executeTakeFirst();
    return row?.key_id;
  }

  /** Makes this key the current one unless there is one already; answers which one is. */
  async adopt(keyId: string): Promise<string> {
    await this.#db
      .insertInto('master_keys')
      .values({ key_id: keyId, current: true })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return (await this.current()) ?? keyId;
  }

  /** Makes this key the current one. Once it returns, nothing is wrapped by an earlier one any more. */
  async makeCurrent(keyId: string): Promise<void> {
    await this.#db.transaction().execute(async (transaction) => {
      // Waits for writers that wrap with the old key, which hold their row of this table shared.
      await sql`select from master_keys for update`.execute(transaction);
      await sql`update master_keys set current = false where current`.execute(transaction);
      await sql`
        insert into master_keys (key_id, current) values (${keyId}, true)
        on conflict (key_id) do update set current = true`.execute(transaction);
    });
  }
}

/**
 * Holds the master key in its place until the transaction ends; false when it is no longer the current
 * one: then what it wraps must not be written.
 */
export async function isCurrentMasterKey(
  transaction: Transaction<Schema>,
  keyId: string,
): Promise<boolean> {
  const { rows } = await sql`
    select from master_keys where key_id = ${keyId} and current for share`.execute(transaction);
  return rows.length === 1;
}
