import { type Kysely, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** A control plane that claimed objects and died leaves them to others after this time. */
const CLAIM_SECONDS = 600;

/**
 * Objects to be deleted from the object store. A statement that gives up an object adds its key here, so that the
 * deletion is neither lost in a crash nor done before the statement is committed. An object that is about to be written
 * is here before, and due later, unless something uses it until then.
 */
export class ObjectDeletionRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Claims up to `limit` objects that are due, those that have waited longest first. From then on nothing can use them. */
  async claim(limit: number): Promise<string[]> {
    const { rows } = await sql<{ object_key: string }>`
      update object_deletions
      set claimed = true, due_at = now() + make_interval(secs => ${CLAIM_SECONDS})
      where object_key in (
        select object_key from object_deletions where due_at <= now()
        order by due_at limit ${limit} for update skip locked)
      returning object_key`.execute(this.#db);
    return rows.map((row) => row.object_key);
  }

  /** Leaves claimed objects that could not be deleted to the next control plane that tries. */
  async release(keys: readonly string[]): Promise<void> {
    await sql`update object_deletions set due_at = now() where object_key = any(${keys})`.execute(
      this.#db,
    );
  }

  /** Notes that these objects are gone. */
  async done(keys: readonly string[]): Promise<void> {
    await sql`delete from object_deletions where object_key = any(${keys})`.execute(this.#db);
  }
}
