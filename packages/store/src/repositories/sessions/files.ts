import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';

/** A complete upload of a session's files. */
export interface StoredFiles {
  readonly uploadId: string;
  readonly sizeBytes: number;
}

/**
 * Working files of sessions that were stored in the database, in pieces. Nothing is added: the next turn that changes a
 * file replaces them by chunks in the object store.
 */
export class SessionFilesRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The complete upload of these files. Undefined when there is none. */
  async find(sessionId: string, filesId: string): Promise<StoredFiles | undefined> {
    const row = await this.#db
      .selectFrom('session_uploads')
      .select(['upload_id', 'size_bytes'])
      .where('session_id', '=', sessionId)
      .where('files_id', '=', filesId)
      .where('size_bytes', 'is not', null)
      .executeTakeFirst();
    return row === undefined
      ? undefined
      : { uploadId: row.upload_id, sizeBytes: Number(row.size_bytes) };
  }

  /** One piece of an upload. Undefined after the last piece. */
  async piece(uploadId: string, piece: number): Promise<Buffer | undefined> {
    const row = await this.#db
      .selectFrom('session_pieces')
      .select('bytes')
      .where('upload_id', '=', uploadId)
      .where('piece', '=', piece)
      .executeTakeFirst();
    return row?.bytes;
  }

  /** Removes up to `limit` uploads that no turn has committed within this time. Returns their number. */
  removeOrphans(olderThanSeconds: number, limit: number): Promise<number> {
    const isOrphan = sql`not committed and created_at < ${ago(olderThanSeconds)}`;
    return removeBatch(this.#db, 'session_uploads', isOrphan, limit);
  }
}
