import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/** A control plane that claimed objects and died leaves them to others after this time. */
const CLAIM_SECONDS = 600;

/** The id of an upload in the key of its object. */
const UPLOAD_ID = '/uploads/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$';

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

  /** Which of these objects something uses. */
  async inUse(keys: readonly string[]): Promise<string[]> {
    const { rows } = await sql<{ object_key: string }>`${usesOf(keys)}`.execute(this.#db);
    return rows.map((row) => row.object_key);
  }

  /**
   * Gives up those of these objects that the database does not know. They are due after `delaySeconds`, since it may be the
   * wrong database, or one that was restored to too early a time. Returns their number.
   */
  async giveUpUnknown(keys: readonly string[], delaySeconds: number): Promise<number> {
    // Also what is here already, seen at the same moment: a reservation ends in the transaction that uses its object. The
    // object of an upload is in no table, but is named after it.
    const { numAffectedRows } = await sql`
      with known as materialized (
        ${usesOf(keys)}
        union all select object_key from object_deletions where object_key = any(${keys})
        union all select object_key from unnest(${keys}::text[]) as listed (object_key)
          join workspace_uploads on upload_id = substring(object_key from ${UPLOAD_ID}::text)::uuid)
      insert into object_deletions (object_key, due_at)
      select object_key, now() + make_interval(secs => ${delaySeconds})
      from unnest(${keys}::text[]) as listed (object_key)
      where object_key not in (select object_key from known)
      on conflict do nothing`.execute(this.#db);
    return Number(numAffectedRows ?? 0);
  }

  /**
   * Claims up to `limit` objects that are due, those that have waited longest first. From then on nothing can use them. One
   * that is in use, because its row came back, is not to be deleted any more.
   */
  async claim(limit: number): Promise<string[]> {
    const { rows } = await sql<{ object_key: string }>`
      update object_deletions
      set claimed = true, due_at = now() + make_interval(secs => ${CLAIM_SECONDS})
      where object_key in (
        select object_key from object_deletions where due_at <= now()
        order by due_at limit ${limit} for no key update skip locked)
      returning object_key`.execute(this.#db);
    const claimed = rows.map((row) => row.object_key);
    const used = claimed.length === 0 ? [] : await this.inUse(claimed);
    if (used.length > 0) await this.done(used);
    return claimed.filter((key) => !used.includes(key));
  }

  /** Leaves claimed objects that could not be deleted to the next control plane that tries. */
  async release(keys: readonly string[]): Promise<void> {
    await sql`update object_deletions set due_at = now() where object_key = any(${keys})`.execute(
      this.#db,
    );
  }

  /** Forgets these objects, which are gone or in use. */
  async done(keys: readonly string[]): Promise<void> {
    await sql`delete from object_deletions where object_key = any(${keys})`.execute(this.#db);
  }
}

/** Those of these objects that something uses. Every table with keys of objects is here. */
function usesOf(keys: readonly string[]): RawBuilder<unknown> {
  return sql`
    select object_key from session_chunks where object_key = any(${keys})
    union all select object_key from workspace_chunks where object_key = any(${keys})
    union all select object_key from workspace_files where object_key = any(${keys})
    union all select object_key from image_blobs where object_key = any(${keys})`;
}
