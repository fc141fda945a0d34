import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../schema.ts';

/** The ids of the master keys that wrap data keys. The keys themselves are never in the database. */
export class MasterKeyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Id of the current master key. Undefined when there is none yet. */
  async current(): Promise<string | undefined> {
    const row = await this.#db
      .selectFrom('master_keys')
      .select('key_id')
      .where('current', '=', true)
      .executeTakeFirst();
    return row?.key_id;
  }

  /** Makes this key the current one unless there already is one. Returns the id of the current key. */
  async adopt(keyId: string): Promise<string> {
    await this.#db
      .insertInto('master_keys')
      .values({ key_id: keyId, current: true })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return (await this.current()) ?? keyId;
  }

  /** Makes this key the current one. After it returns, no new data key is wrapped by an earlier key. */
  async makeCurrent(keyId: string): Promise<void> {
    await this.#db.transaction().execute(async (transaction) => {
      // Waits for writers that use the old key: they hold a shared lock on its row.
      await sql`select from master_keys order by key_id for no key update`.execute(transaction);
      await sql`update master_keys set current = false where current`.execute(transaction);
      await sql`
        insert into master_keys (key_id, current) values (${keyId}, true)
        on conflict (key_id) do update set current = true`.execute(transaction);
    });
  }
}

/**
 * Locks the master key as the current one until the transaction ends. False when it is no longer current. Then nothing
 * wrapped by it may be written.
 */
export async function isCurrentMasterKey(
  transaction: Transaction<Schema>,
  keyId: string,
): Promise<boolean> {
  const { rows } = await sql`
    select from master_keys where key_id = ${keyId} and current for share`.execute(transaction);
  return rows.length === 1;
}
