import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/**
 * Objects to be deleted from the object store. A statement that gives up an object adds its key here, so that the
 * deletion is neither lost in a crash nor done before the statement is committed.
 */
export class ObjectDeletionRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The keys that have waited longest. */
  async next(limit: number): Promise<string[]> {
    const rows = await this.#db
      .selectFrom('object_deletions')
      .select('object_key')
      .orderBy('requested_at')
      .limit(limit)
      .execute();
    return rows.map((row) => row.object_key);
  }

  /** Notes that these objects are gone. */
  async done(keys: readonly string[]): Promise<void> {
    await sql`delete from object_deletions where object_key = any(${keys})`.execute(this.#db);
  }
}
