import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema, SigningKeyRow } from '../schema.ts';

/** A key and its age by the clock of the database, which all control planes share. */
export type AgedSigningKey = SigningKeyRow & { readonly age_seconds: number };

/** The sealed keys that sign account tokens, shared by all control planes. */
export class SigningKeyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** All keys that are younger than `seconds`, newest first. */
  async youngerThan(seconds: number): Promise<AgedSigningKey[]> {
    const { rows } = await sql<AgedSigningKey>`
      select signing_keys.*, extract(epoch from now() - created_at)::float8 as age_seconds
      from signing_keys where ${isYounger(seconds)}
      order by created_at desc, kid`.execute(this.#db);
    return rows;
  }

  /**
   * Adds a key unless there is one that is younger than `seconds`, apart from those in `unusable`. Of several concurrent
   * callers one adds its key. Returns whether this one did.
   */
  async addUnlessYounger(
    key: { readonly kid: string; readonly sealed: Buffer },
    seconds: number,
    unusable: readonly string[],
  ): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      // A condition alone would let through every caller that cannot see the uncommitted keys of the others.
      await sql`lock table signing_keys in exclusive mode`.execute(transaction);
      const { rows } = await sql`
        insert into signing_keys (kid, sealed)
        select ${key.kid}, ${key.sealed}
        where not exists (select from signing_keys
          where ${isYounger(seconds)} and kid <> all(${[...unusable]}::text[]))
        returning kid`.execute(transaction);
      return rows.length === 1;
    });
  }

  /** Removes up to `limit` keys that are not younger than `seconds`. Returns their number. */
  removeOlder(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'signing_keys', sql`not ${isYounger(seconds)}`, limit);
  }
}

function isYounger(seconds: number) {
  return sql`(created_at > ${ago(seconds)})`;
}
