import { type Kysely, sql } from 'kysely';
import type { Schema, SigningKeyRow } from '../schema.ts';

/** The sealed keys that sign account tokens, shared by all control planes. */
export class SigningKeyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The newest keys, newest first. */
  async newest(count: number): Promise<SigningKeyRow[]> {
    return this.#db
      .selectFrom('signing_keys')
      .selectAll()
      .orderBy('created_at', 'desc')
      .orderBy('kid')
      .limit(count)
      .execute();
  }

  /**
   * Adds a key if the newest key is still `replaces` (undefined: if there is none). False when another control plane has
   * added a key first.
   */
  async add(key: { kid: string; sealed: Buffer }, replaces: string | undefined): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      await sql`lock table signing_keys in exclusive mode`.execute(transaction);
      const newest = await new SigningKeyRepository(transaction).newest(1);
      if (newest[0]?.kid !== replaces) return false;
      await transaction.insertInto('signing_keys').values(key).execute();
      return true;
    });
  }
}
