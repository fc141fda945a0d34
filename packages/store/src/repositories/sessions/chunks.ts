import { type Kysely, sql, type Transaction } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';

/** A chunk and the object that contains it. */
export interface StoredChunk {
  readonly id: Buffer;
  readonly objectKey: string;
}

/** A chunk whose object is to be uploaded. */
export interface AnnouncedChunk extends StoredChunk {
  /** Size of the object. */
  readonly storedBytes: number;
}

/**
 * The chunks of the files of sessions: which there are, and in which objects. Chunks are used while the session's
 * manifest names them. Unused ones are removed some time after the last save that asked for them.
 */
export class SessionChunkRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Which of these chunks are stored. Those that are unused are kept as long as if they had just been stored. */
  async renew(sessionId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
    const { rows } = await sql<{ chunk_id: Buffer }>`
      with renewed as (
        update session_chunks set unused_since = now()
        where session_id = ${sessionId} and chunk_id = any(${ids}::bytea[])
          and stored_at is not null and unused_since is not null
        returning chunk_id)
      select chunk_id from renewed
      union
      select chunk_id from session_chunks
      where session_id = ${sessionId} and chunk_id = any(${ids}::bytea[]) and unused_since is null`.execute(
      this.#db,
    );
    return rows.map((row) => row.chunk_id);
  }

  /**
   * Notes uploads before they begin, so that none is forgotten. A chunk whose upload was announced before keeps its
   * object. Returns the chunks to upload, which are those that are not stored; none for an erased session.
   */
  async announce(sessionId: string, chunks: readonly AnnouncedChunk[]): Promise<StoredChunk[]> {
    const ids = chunks.map(({ id }) => id);
    const keys = chunks.map(({ objectKey }) => objectKey);
    const sizes = chunks.map(({ storedBytes }) => storedBytes);
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string }>`
      insert into session_chunks (session_id, chunk_id, object_key, stored_bytes)
      select session_id, chunk.id, chunk.object_key, chunk.bytes
      from sessions, unnest(${ids}::bytea[], ${keys}::text[], ${sizes}::int[])
        as chunk (id, object_key, bytes)
      where session_id = ${sessionId} and erased_at is null
      -- An erasure in progress is waited for, and one that comes later finds these chunks.
      for share of sessions
      on conflict (session_id, chunk_id) do update
        set stored_bytes = excluded.stored_bytes, unused_since = now()
        where session_chunks.stored_at is null
      returning chunk_id, object_key`.execute(this.#db);
    return rows.map((row) => ({ id: row.chunk_id, objectKey: row.object_key }));
  }

  /** Which of these chunks have been announced but not seen in the object store. */
  async unconfirmed(sessionId: string, ids: readonly Buffer[]): Promise<AnnouncedChunk[]> {
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string; stored_bytes: number }>`
      select chunk_id, object_key, stored_bytes from session_chunks
      where session_id = ${sessionId} and chunk_id = any(${ids}::bytea[]) and stored_at is null`.execute(
      this.#db,
    );
    return rows.map((row) => ({
      id: row.chunk_id,
      objectKey: row.object_key,
      storedBytes: row.stored_bytes,
    }));
  }

  /** Notes that these objects are in the object store. Chunks that were removed in the meantime stay removed. */
  async confirm(objectKeys: readonly string[]): Promise<void> {
    await sql`
      update session_chunks set stored_at = now(), unused_since = now()
      where object_key = any(${objectKeys}) and stored_at is null`.execute(this.#db);
  }

  /** Which of these chunks are stored, and where. */
  async find(sessionId: string, ids: readonly Buffer[]): Promise<StoredChunk[]> {
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string }>`
      select chunk_id, object_key from session_chunks
      where session_id = ${sessionId} and chunk_id = any(${ids}::bytea[]) and stored_at is not null`.execute(
      this.#db,
    );
    return rows.map((row) => ({ id: row.chunk_id, objectKey: row.object_key }));
  }

  /**
   * Gives up up to `limit` chunks that have been unused for longer than this, and returns their number. Their objects are
   * to be deleted. The lock of each row decides between this and a turn that names the chunk.
   */
  async removeUnused(olderThanSeconds: number, limit: number): Promise<number> {
    const { numAffectedRows } = await sql`
      with unused as materialized (
        select object_key from session_chunks
        where unused_since < ${ago(olderThanSeconds)}
        order by unused_since limit ${limit} for update skip locked),
      removed as (
        delete from session_chunks using unused
        where session_chunks.object_key = unused.object_key
        returning session_chunks.object_key)
      insert into object_deletions (object_key) select object_key from removed
      on conflict do nothing`.execute(this.#db);
    return Number(numAffectedRows ?? 0);
  }

  /** Which of these objects contain a chunk. */
  async known(objectKeys: readonly string[]): Promise<string[]> {
    const { rows } = await sql<{ object_key: string }>`
      select object_key from session_chunks where object_key = any(${objectKeys})`.execute(
      this.#db,
    );
    return rows.map((row) => row.object_key);
  }
}

/** Gives up all chunks of sessions that are erased. Their objects are to be deleted. */
export async function giveUpChunks(
  transaction: Transaction<Schema>,
  sessionIds: readonly string[],
): Promise<void> {
  await sql`delete from session_manifests where session_id = any(${sessionIds}::uuid[])`.execute(
    transaction,
  );
  await sql`
    with removed as (
      delete from session_chunks where session_id = any(${sessionIds}::uuid[])
      returning object_key)
    insert into object_deletions (object_key) select object_key from removed
    on conflict do nothing`.execute(transaction);
}
