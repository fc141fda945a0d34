import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';

/** The results of a finished turn. */
export interface Turn {
  readonly sessionId: string;
  readonly generation: number;
  readonly firstSeq: number;
  /** `firstSeq - 1` when there are no frames. */
  readonly lastSeq: number;
  /** One JSON object a line, UTF-8. */
  readonly frames: Buffer;
  /** Default: unchanged. */
  readonly conversation?: Buffer;
  /** Default: unchanged. */
  readonly filesId?: string;
}

/** The outcome of committing a turn. Repeating a commit also gives `committed`. */
export type TurnOutcome = 'committed' | 'stale' | 'unknown_session' | 'unknown_files';

/** The state from which a session resumes. */
export interface StoredState {
  readonly generation: number;
  readonly lastSeq: number;
  readonly conversation: Buffer | undefined;
  readonly filesId: string | undefined;
  readonly frames: Buffer;
  readonly firstSeq: number;
}

/** The recent frames, the conversation and the files of a session, which change together. */
export class SessionHistoryRepository {
  readonly #db: Kysely<Schema>;
  readonly #maxBytes: number;

  /** @param maxBytes limit on the stored frames of a session; the oldest are removed first */
  constructor(db: Kysely<Schema>, maxBytes: number) {
    this.#db = db;
    this.#maxBytes = maxBytes;
  }

  /** Commits a turn atomically. A turn older than the newest commit changes nothing. */
  async commit(turn: Turn): Promise<TurnOutcome> {
    return this.#db.transaction().execute(async (transaction) => {
      const session = await transaction
        .selectFrom('sessions')
        .select(['generation', 'last_seq', 'commit_seq', 'files_id'])
        .where('session_id', '=', turn.sessionId)
        .forNoKeyUpdate()
        .executeTakeFirst();
      if (session === undefined) return 'unknown_session';
      if (session.generation !== turn.generation) return 'stale';
      if (isOlder(turn, Number(session.last_seq), Number(session.commit_seq))) return 'committed';
      const newFiles = turn.filesId !== undefined && turn.filesId !== session.files_id;
      if (newFiles && !(await takeFiles(transaction, turn.sessionId, turn.filesId))) {
        return 'unknown_files';
      }
      await this.#keep(transaction, turn);
      await transaction
        .updateTable('sessions')
        .set({
          last_seq: Math.max(turn.lastSeq, Number(session.last_seq)),
          commit_seq: turn.firstSeq,
          ...(turn.conversation === undefined ? {} : { conversation: turn.conversation }),
          ...(turn.filesId === undefined ? {} : { files_id: turn.filesId }),
        })
        .where('session_id', '=', turn.sessionId)
        .execute();
      return 'committed';
    });
  }

  /** The stored state of a session. Undefined when the session does not exist. */
  async state(sessionId: string): Promise<StoredState | undefined> {
    return this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (transaction) => {
        const session = await transaction
          .selectFrom('sessions')
          .select(['generation', 'last_seq', 'conversation', 'files_id'])
          .where('session_id', '=', sessionId)
          .executeTakeFirst();
        if (session === undefined) return undefined;
        const chunks = await transaction
          .selectFrom('session_frames')
          .select(['first_seq', 'frames'])
          .where('session_id', '=', sessionId)
          .orderBy('first_seq')
          .execute();
        const lastSeq = Number(session.last_seq);
        return {
          generation: session.generation,
          lastSeq,
          conversation: session.conversation ?? undefined,
          filesId: session.files_id ?? undefined,
          frames: Buffer.concat(chunks.map((chunk) => chunk.frames)),
          firstSeq: chunks[0] === undefined ? lastSeq + 1 : Number(chunks[0].first_seq),
        };
      });
  }

  async #keep(transaction: Transaction<Schema>, turn: Turn): Promise<void> {
    if (turn.frames.length === 0) return;
    const { sessionId } = turn;
    const chunk = newest(turn, this.#maxBytes);
    // A repeated turn, or one with different bounds that a worker sends after a crash.
    await transaction
      .deleteFrom('session_frames')
      .where('session_id', '=', sessionId)
      .where('first_seq', '>=', sql<string>`${chunk.firstSeq}`)
      .execute();
    // Removes frames before a gap, so that a replay has no gaps.
    await sql`
      delete from session_frames where session_id = ${sessionId}
        and not exists (select from session_frames last
          where last.session_id = ${sessionId} and last.last_seq = ${chunk.firstSeq - 1})`.execute(
      transaction,
    );
    await transaction
      .insertInto('session_frames')
      .values({
        session_id: sessionId,
        first_seq: chunk.firstSeq,
        last_seq: turn.lastSeq,
        frames: chunk.frames,
      })
      .execute();
    await sql`
      delete from session_frames using (
        select first_seq, sum(octet_length(frames)) over (order by first_seq desc) as bytes
        from session_frames where session_id = ${sessionId}
      ) sized
      where session_frames.session_id = ${sessionId} and session_frames.first_seq = sized.first_seq
        and sized.bytes > ${this.#maxBytes}`.execute(transaction);
  }
}

function isOlder(turn: Turn, lastSeq: number, commitSeq: number): boolean {
  return turn.lastSeq < lastSeq || (turn.lastSeq === lastSeq && turn.firstSeq < commitSeq);
}

/** Makes uploaded files the files of the session and removes its earlier ones. False when there is no such upload. */
async function takeFiles(
  transaction: Transaction<Schema>,
  sessionId: string,
  filesId: string | undefined,
): Promise<boolean> {
  const { rows } = await sql`
    update session_uploads set committed = true
    where session_id = ${sessionId} and files_id = ${filesId} and size_bytes is not null
    returning 1`.execute(transaction);
  if (rows.length === 0) return false;
  await sql`
    delete from session_uploads
    where session_id = ${sessionId} and files_id <> ${filesId} and committed`.execute(transaction);
  return true;
}

/** The last frames of a turn that fit into `maxBytes`. Each line is one frame. */
function newest(
  { frames, firstSeq }: Turn,
  maxBytes: number,
): { frames: Buffer; firstSeq: number } {
  if (frames.length <= maxBytes) return { frames, firstSeq };
  const start = frames.indexOf('\n', frames.length - maxBytes - 1) + 1;
  const kept = start === 0 ? frames.subarray(frames.length) : frames.subarray(start);
  const dropped = frames.subarray(0, frames.length - kept.length);
  return { frames: kept, firstSeq: firstSeq + countLines(dropped) };
}

function countLines(text: Buffer): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
