import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Files are stored in pieces of this size. */
export const PIECE_BYTES = 1024 * 1024;

/** A complete upload of a session's files. */
export interface StoredFiles {
  readonly uploadId: string;
  readonly sizeBytes: number;
}

/** Working files of sessions, in pieces. An upload is kept only if a committed turn names it. */
export class SessionFilesRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Begins an upload, whose id is a UUID. Of several uploads of the same files, the first to finish is kept. */
  async begin(uploadId: string, sessionId: string, filesId: string): Promise<void> {
    await this.#db
      .insertInto('session_uploads')
      .values({ upload_id: uploadId, session_id: sessionId, files_id: filesId })
      .execute();
  }

  async addPiece(uploadId: string, piece: number, bytes: Buffer): Promise<void> {
    await this.#db
      .insertInto('session_pieces')
      .values({ upload_id: uploadId, piece, bytes })
      .execute();
  }

  /** Completes an upload, or discards it when another upload of the same files has finished first. */
  async finish(uploadId: string, sizeBytes: number): Promise<void> {
    const { rows } = await sql`
      update session_uploads done set size_bytes = ${sizeBytes}
      where upload_id = ${uploadId} and not exists (select from session_uploads other
        where other.session_id = done.session_id and other.files_id = done.files_id
          and other.size_bytes is not null)
      returning 1`.execute(this.#db);
    if (rows.length === 0) await this.discard(uploadId);
  }

  async discard(uploadId: string): Promise<void> {
    await this.#db
      .deleteFrom('session_uploads')
      .where('upload_id', '=', uploadId)
      .where('committed', '=', false)
      .execute();
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

  /** Removes uploads that no turn has committed within this time. Returns their number. */
  async removeOrphans(olderThanSeconds: number): Promise<number> {
    const { numAffectedRows } = await sql`
      delete from session_uploads
      where not committed and created_at < now() - make_interval(secs => ${olderThanSeconds})`.execute(
      this.#db,
    );
    return Number(numAffectedRows ?? 0);
  }
}
