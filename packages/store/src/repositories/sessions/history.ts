import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';

/** What a finished turn left behind. */
export interface Turn {
  readonly sessionId: string;
  readonly generation: number;
  readonly firstSeq: number;
  /** `firstSeq - 1` when there are no frames. */
  readonly lastSeq: number;
  /** One JSON object a line, UTF-8. */
  readonly frames: Buffer;
  /** As it was, when left out. */
  readonly conversation?: Buffer;
  /** As they were, when left out. */
  readonly filesId?: string;
}

/** What became of a turn. A repeated one is committed as well. */
export type TurnOutcome = 'committed' | 'stale' | 'unknown_session' | 'unknown_files';

/** Where a session goes on from. */
export interface StoredState {
  readonly generation: number;
  readonly lastSeq: number;
  readonly conversation: Buffer | undefined;
  readonly filesId: string | undefined;
  readonly frames: Buffer;
  readonly firstSeq: number;
}

/** Frames kept of a session, its conversation, and which files belong to it: one thing, changed as one. */
export class SessionHistoryRepository {
  readonly #db: Kysely<Schema>;
  readonly #mostBytes: number;

  /** `mostBytes` bounds the frames kept of a session; the oldest go first. */
  constructor(db: Kysely<Schema>, mostBytes: number) {
    this.#db = db;
    this.#mostBytes = mostBytes;
  }

  /** Commits a turn, all of it or nothing. What is older than the newest commit changes nothing. */
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

  /** Undefined when there is no such session. */
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
    const chunk = newest(turn, this.#mostBytes);
    // The same turn again, or one that a worker cut otherwise after a crash.
    await transaction
      .deleteFrom('session_frames')
      .where('session_id', '=', sessionId)
      .where('first_seq', '>=', sql<string>`${chunk.firstSeq}`)
      .execute();
    // Nothing is kept before a hole, so that what is replayed has none.
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
        and sized.bytes > ${this.#mostBytes}`.execute(transaction);
  }
}

function isOlder(turn: Turn, lastSeq: number, commitSeq: number): boolean {
  return turn.lastSeq < lastSeq || (turn.lastSeq === lastSeq && turn.firstSeq < commitSeq);
}

/** Makes uploaded files those of the session, in place of what it had; false when there are none of this id. */
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

/** The last lines of a turn that fit; each line is a frame that names its own `seq`. */
function newest(
  { frames, firstSeq }: Turn,
  mostBytes: number,
): { frames: Buffer; firstSeq: number } {
  if (frames.length <= mostBytes) return { frames, firstSeq };
  const start = frames.indexOf('\n', frames.length - mostBytes - 1) + 1;
  const kept = start === 0 ? frames.subarray(frames.length) : frames.subarray(start);
  const dropped = frames.subarray(0, frames.length - kept.length);
  return { frames: kept, firstSeq: firstSeq + countLines(dropped) };
}

function countLines(text: Buffer): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
