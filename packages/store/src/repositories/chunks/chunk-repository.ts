import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import { lockName } from '../../advisory-lock.ts';
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

/** Keys of objects, in the order of their bytes. */
export interface KeyRange {
  /** Not in the range itself. */
  readonly after: string;
  readonly last: string;
}

/** Where the chunks of one kind of owner are. */
export interface ChunkTables {
  readonly chunks: 'session_chunks' | 'workspace_chunks';
  readonly owners: 'sessions' | 'workspaces';
  /** The primary key of the owners, also a column of the chunks. */
  readonly owner: 'session_id' | 'workspace_id';
  /** Which owners get new chunks, and the lock that holds an owner so. */
  readonly open: RawBuilder<unknown>;
  readonly lock: RawBuilder<unknown>;
  /** What else new chunks have. */
  readonly also?: { readonly column: string; readonly value: boolean };
}

/** Chunks of sessions. An erasure in progress is waited for, and one that comes later finds new chunks. */
export const SESSION_CHUNKS: ChunkTables = {
  chunks: 'session_chunks',
  owners: 'sessions',
  owner: 'session_id',
  open: sql`erased_at is null`,
  lock: sql`for share of sessions`,
};

/** Chunks of conversations and frames, whose ids are never those of chunks of files. */
export const TRANSCRIPT_CHUNKS: ChunkTables = {
  ...SESSION_CHUNKS,
  also: { column: 'of_transcript', value: true },
};

/** Chunks of workspaces. */
export const WORKSPACE_CHUNKS: ChunkTables = {
  chunks: 'workspace_chunks',
  owners: 'workspaces',
  owner: 'workspace_id',
  open: sql`true`,
  lock: sql`for key share of workspaces`,
};

/** What a chunk counts at least in bytes, since its row and its object take some too. */
const LEAST_BYTES = 4096;

/** The unused chunks of a tenant, or of one owner, would have more bytes than they may. */
export class TooManyUnusedChunks extends Error {
  override readonly name = 'TooManyUnusedChunks';
}

/**
 * The chunks of stored content: which there are, and in which objects. Chunks are used while the content of their owner
 * contains them. Unused ones are removed some time after the last save that asked for them. Several saves of one owner may
 * run at once, so rows are locked in the order of their ids.
 */
export class ChunkRepository {
  readonly #db: Kysely<Schema>;
  readonly #tables: ChunkTables;
  readonly #chunks: RawBuilder<unknown>;
  readonly #owner: RawBuilder<unknown>;
  readonly #unusedBytes: number;
  readonly #ownBytes: number;

  /**
   * @param unusedBytes what the unused chunks of a tenant may have, those that are being uploaded included
   * @param ownBytes what those of one owner may have, if that is more than half of what the tenant's others leave
   */
  constructor(
    db: Kysely<Schema>,
    tables: ChunkTables,
    unusedBytes = Number.POSITIVE_INFINITY,
    ownBytes = unusedBytes,
  ) {
    this.#db = db;
    this.#tables = tables;
    this.#unusedBytes = unusedBytes;
    this.#ownBytes = ownBytes;
    this.#chunks = sql.table(tables.chunks);
    this.#owner = sql.ref(tables.owner);
  }

  /**
   * Which of these chunks are stored, and not lost. Those that are unused are kept as long as if they had just been
   * stored.
   */
  async renew(ownerId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
    const named = sql`${this.#owner} = ${ownerId} and chunk_id = any(${ids}::bytea[])`;
    const { rows } = await sql<{ chunk_id: Buffer }>`
      with unused as materialized (
        select object_key from ${this.#chunks}
        where ${named} and stored_at is not null and lost_at is null and unused_since is not null
        order by chunk_id for no key update),
      renewed as (
        update ${this.#chunks} as chunks set unused_since = now() from unused
        where chunks.object_key = unused.object_key and unused_since is not null
        returning chunk_id)
      select chunk_id from renewed
      union
      select chunk_id from ${this.#chunks}
      where ${named} and unused_since is null and lost_at is null`.execute(this.#db);
    return rows.map((row) => row.chunk_id);
  }

  /**
   * Notes uploads before they begin, so that none is forgotten. A chunk whose upload was announced before keeps its
   * object. Returns the chunks to upload, which are those that are not stored, or lost; none for an owner that gets no
   * new ones.
   * @throws TooManyUnusedChunks
   */
  async announce(ownerId: string, announced: readonly AnnouncedChunk[]): Promise<StoredChunk[]> {
    if (this.#unusedBytes === Number.POSITIVE_INFINITY) {
      return this.#insert(this.#db, ownerId, announced);
    }
    return this.#db.transaction().execute(async (transaction) => {
      const tenantId = await this.#lockUnused(transaction, ownerId);
      const added = await this.#insert(transaction, ownerId, announced);
      if (added.length > 0) await this.#checkUnused(transaction, tenantId, ownerId);
      return added;
    });
  }

  /** Makes the tenant's other announcements wait until the transaction ends, so that each sees the bytes of the others. */
  async #lockUnused(transaction: Transaction<Schema>, ownerId: string): Promise<string> {
    const { chunks, owners } = this.#tables;
    const { rows } = await sql<{ tenant_id: string }>`
      select tenant_id from ${sql.table(owners)} where ${this.#owner} = ${ownerId}`.execute(
      transaction,
    );
    const tenantId = rows[0]?.tenant_id ?? '';
    const key = `unused ${chunks} ${tenantId}`;
    await lockName(transaction, key);
    return tenantId;
  }

  /** Leaves a part to other owners, however much one announces. @throws TooManyUnusedChunks */
  async #checkUnused(db: Kysely<Schema>, tenantId: string, ownerId: string): Promise<void> {
    const { owners, open } = this.#tables;
    const owned = sql.ref(`${owners}.${this.#tables.owner}`);
    // For each owner apart, so that the unused chunks of other tenants are never read.
    const { rows } = await sql<{ own: string; others: string }>`
      select coalesce(sum(bytes) filter (where is_own), 0) as own,
        coalesce(sum(bytes) filter (where not is_own), 0) as others
      from (
        select ${owned} = ${ownerId} as is_own, (
          select sum(greatest(stored_bytes, ${LEAST_BYTES}::int)) from ${this.#chunks} as chunks
          where ${sql.ref(`chunks.${this.#tables.owner}`)} = ${owned} and unused_since is not null) as bytes
        from ${sql.table(owners)} where tenant_id = ${tenantId} and ${open}) as unused`.execute(db);
    const [own, others] = [Number(rows[0]?.own ?? 0), Number(rows[0]?.others ?? 0)];
    const left = this.#unusedBytes - others;
    if (own > Math.min(left, Math.max(this.#ownBytes, left / 2))) throw new TooManyUnusedChunks();
  }

  async #insert(
    db: Kysely<Schema>,
    ownerId: string,
    announced: readonly AnnouncedChunk[],
  ): Promise<StoredChunk[]> {
    const { chunks: table, owners, open, lock, also } = this.#tables;
    const column = also === undefined ? sql`` : sql`, ${sql.ref(also.column)}`;
    const value = also === undefined ? sql`` : sql`, ${also.value}::boolean`;
    const sorted = [...announced].sort((a, b) => Buffer.compare(a.id, b.id));
    const ids = sorted.map(({ id }) => id);
    const keys = sorted.map(({ objectKey }) => objectKey);
    const sizes = sorted.map(({ storedBytes }) => storedBytes);
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string }>`
      insert into ${this.#chunks} (${this.#owner}, chunk_id, object_key, stored_bytes${column})
      select ${this.#owner}, chunk.id, chunk.object_key, chunk.bytes${value}
      from ${sql.table(owners)}, unnest(${ids}::bytea[], ${keys}::text[], ${sizes}::int[])
        as chunk (id, object_key, bytes)
      where ${this.#owner} = ${ownerId} and ${open}
      order by chunk.id
      ${lock}
      on conflict (${this.#owner}, chunk_id) do update
        set stored_bytes = excluded.stored_bytes, unused_since = ${renewedSince(table)}
        where ${isMissing(table)}
      returning chunk_id, object_key`.execute(db);
    return rows.map((row) => ({ id: row.chunk_id, objectKey: row.object_key }));
  }

  /** Which of these chunks have been announced but not seen in the object store since, or are lost. */
  async unconfirmed(ownerId: string, ids: readonly Buffer[]): Promise<AnnouncedChunk[]> {
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string; stored_bytes: number }>`
      select chunk_id, object_key, stored_bytes from ${this.#chunks}
      where ${this.#owner} = ${ownerId} and chunk_id = any(${ids}::bytea[])
        and ${isMissing(this.#tables.chunks)}`.execute(this.#db);
    return rows.map((row) => ({
      id: row.chunk_id,
      objectKey: row.object_key,
      storedBytes: row.stored_bytes,
    }));
  }

  /** Notes that these objects are in the object store. Chunks that were removed in the meantime stay removed. */
  async confirm(objectKeys: readonly string[]): Promise<void> {
    await sql`
      with uploaded as materialized (
        select object_key from ${this.#chunks}
        where object_key = any(${objectKeys}) and ${isMissing(this.#tables.chunks)}
        order by chunk_id for no key update)
      update ${this.#chunks} as chunks
      set stored_at = now(), lost_at = null, unused_since = ${renewedSince('chunks')} from uploaded
      where chunks.object_key = uploaded.object_key
        and ${isMissing('chunks')}`.execute(this.#db);
  }

  /**
   * The objects of chunks, at most `limit`, that a listing of the objects in this range does not have. Leaves out those
   * that were stored within `olderThanSeconds`, which may be younger than the listing, and those that are known to be lost.
   */
  async unlisted(
    { after, last }: KeyRange,
    listed: readonly string[],
    olderThanSeconds: number,
    limit: number,
  ): Promise<string[]> {
    const { rows } = await sql<{ object_key: string }>`
      select object_key from ${this.#chunks} as chunks
      where object_key collate "C" > ${after} and object_key collate "C" <= ${last}
        and stored_at < ${ago(olderThanSeconds)} and lost_at is null
        and not exists (select from unnest(${listed}::text[]) as listed (object_key)
          where listed.object_key = chunks.object_key)
      order by object_key collate "C" limit ${limit}`.execute(this.#db);
    return rows.map((row) => row.object_key);
  }

  /**
   * Notes that these objects are lost, except those that were stored within `olderThanSeconds`. Chunks that a save is using
   * at the moment are left to the next comparison. Returns the number of chunks.
   */
  async noteLost(objectKeys: readonly string[], olderThanSeconds: number): Promise<number> {
    const { numAffectedRows } = await sql`
      with lost as materialized (
        select object_key from ${this.#chunks}
        where object_key = any(${objectKeys}) and lost_at is null
          and stored_at < ${ago(olderThanSeconds)}
        order by chunk_id for no key update skip locked)
      update ${this.#chunks} as chunks set lost_at = now() from lost
      where chunks.object_key = lost.object_key`.execute(this.#db);
    return Number(numAffectedRows ?? 0);
  }

  /** Notes that objects which were lost are there again, for instance because the store had the wrong bucket. */
  async noteFound(objectKeys: readonly string[]): Promise<void> {
    await sql`
      with found as materialized (
        select object_key from ${this.#chunks}
        where object_key = any(${objectKeys}) and lost_at is not null
        order by chunk_id for no key update skip locked)
      update ${this.#chunks} as chunks set lost_at = null from found
      where chunks.object_key = found.object_key`.execute(this.#db);
  }

  /** Which of these chunks are stored, and where. */
  async find(ownerId: string, ids: readonly Buffer[]): Promise<StoredChunk[]> {
    const { rows } = await sql<{ chunk_id: Buffer; object_key: string }>`
      select chunk_id, object_key from ${this.#chunks}
      where ${this.#owner} = ${ownerId} and chunk_id = any(${ids}::bytea[]) and stored_at is not null`.execute(
      this.#db,
    );
    return rows.map((row) => ({ id: row.chunk_id, objectKey: row.object_key }));
  }

  /**
   * Gives up up to `limit` chunks that have been unused for longer than this, and returns their number. Their objects are
   * to be deleted. The lock of each row decides between this and a save that uses the chunk.
   */
  async removeUnused(olderThanSeconds: number, limit: number): Promise<number> {
    const { numAffectedRows } = await sql`
      with unused as materialized (
        select object_key from ${this.#chunks}
        where unused_since < ${ago(olderThanSeconds)}
        order by unused_since limit ${limit} for update skip locked),
      removed as (
        delete from ${this.#chunks} as chunks using unused
        where chunks.object_key = unused.object_key
        returning chunks.object_key)
      insert into object_deletions (object_key) select object_key from removed
      on conflict do nothing`.execute(this.#db);
    return Number(numAffectedRows ?? 0);
  }
}

/** Whether a chunk has no object: it was never seen in the object store, or is lost. */
function isMissing(table: string): RawBuilder<unknown> {
  return sql`(${sql.ref(`${table}.stored_at`)} is null or ${sql.ref(`${table}.lost_at`)} is not null)`;
}

/** When the chunks that a save is going to name count as unused: used ones, whose objects were lost, do not. */
function renewedSince(table: string): RawBuilder<unknown> {
  return sql`case when ${sql.ref(`${table}.unused_since`)} is null then null else now() end`;
}
