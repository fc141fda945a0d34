import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import { type Content, isStored, joinIds, sizeOf, splitIds } from './content.ts';
import { checkQuota, StorageFull } from './kept-bytes.ts';
import { countKeptBytes, findManifest, type Manifest, takeManifest } from './manifests.ts';
import {
  beginNumbering,
  extendNumbering,
  type Numberer,
  type ReservedNumbers,
} from './numbering.ts';
import {
  type ArchivedTranscript,
  archive,
  claimUnarchived,
  findInline,
  findTranscriptObject,
  holdTranscript,
  type InlineTranscript,
  noteTranscriptChunks,
  storedConversation,
  type UnarchivedSession,
} from './transcripts.ts';

/** The results of a finished turn. */
export interface Turn {
  readonly sessionId: string;
  readonly generation: number;
  readonly firstSeq: number;
  /** `firstSeq - 1` when there are no frames. */
  readonly lastSeq: number;
  /** One JSON object a line, UTF-8. */
  readonly frames: Content;
  /** The first frame in `frames`, if the ones before it are left out. Default: `firstSeq`. */
  readonly framesFrom?: number;
  /** Default: unchanged. */
  readonly conversation?: Content;
  /** Default: unchanged. */
  readonly files?: Manifest;
  /** The numberer of these frames, if it will number no more. */
  readonly lastOf?: string;
}

/** The outcome of committing a turn. Repeating a commit also gives `committed`. */
export type TurnOutcome =
  | 'committed'
  | 'stale'
  | 'erased'
  | 'unknown_session'
  | 'unknown_files'
  /** A chunk of the conversation or the frames is not stored. */
  | 'unknown_chunks'
  /**
   * The tenant's sessions would keep more bytes than they may. What is smaller may fit: the turn without its files, or only
   * its numbers.
   */
  | 'storage_full';

/** The state from which a session resumes. */
export interface StoredState {
  readonly generation: number;
  readonly lastSeq: number;
  readonly conversation: Content | undefined;
  /** Names the files; undefined without files. */
  readonly filesId: string | undefined;
  /** What the files are. Undefined for files in the database, see {@link SessionFilesRepository}. */
  readonly manifest: Manifest | undefined;
  /** To be joined. */
  readonly frames: readonly Content[];
  readonly firstSeq: number;
}

/** The recent frames, the conversation and the files of a session, which change together. */
export class SessionHistoryRepository {
  readonly #db: Kysely<Schema>;
  readonly #maxBytes: number;
  readonly #tenantBytes: number;

  /**
   * @param maxBytes limit on the stored frames of a session; the oldest are removed first
   * @param tenantBytes what the sessions of a tenant may keep in all: their conversations, files and frames
   */
  constructor(
    db: Kysely<Schema>,
    maxBytes: number,
    tenantBytes: number = Number.POSITIVE_INFINITY,
  ) {
    this.#db = db;
    this.#maxBytes = maxBytes;
    this.#tenantBytes = tenantBytes;
  }

  /** Commits a turn atomically. A turn older than the newest commit, or one that is refused, changes nothing. */
  async commit(turn: Turn): Promise<TurnOutcome> {
    try {
      return await this.#commit(turn);
    } catch (error) {
      if (error instanceof StorageFull) return 'storage_full';
      throw error;
    }
  }

  async #commit(turn: Turn): Promise<TurnOutcome> {
    return this.#db.transaction().execute(async (transaction) => {
      const session = await transaction
        .selectFrom('sessions')
        .select([
          'generation',
          'last_seq',
          'commit_seq',
          'files_id',
          'base_seq',
          'numbered_by',
          'erased_at',
          'tenant_id',
          'kept_bytes',
          hasTranscriptChunks.as('has_transcript_chunks'),
        ])
        .where('session_id', '=', turn.sessionId)
        .forNoKeyUpdate()
        .executeTakeFirst();
      if (session === undefined) return 'unknown_session';
      if (session.erased_at !== null) return 'erased';
      if (session.generation !== turn.generation) return 'stale';
      if (isOlder(turn, Number(session.last_seq), Number(session.commit_seq))) return 'committed';
      const stored = [turn.conversation, turn.frames].filter(isStored);
      if (!(await holdTranscript(transaction, turn.sessionId, stored))) return 'unknown_chunks';
      const { files } = turn;
      const isNew = files !== undefined && files.filesId !== session.files_id;
      if (isNew && !(await takeManifest(transaction, turn.sessionId, files))) {
        return 'unknown_files';
      }
      await this.#keep(transaction, turn, Number(session.base_seq));
      const isLast = turn.lastOf !== undefined && turn.lastOf === session.numbered_by;
      await transaction
        .updateTable('sessions')
        .set({
          last_seq: turn.lastSeq,
          // No higher number has been shown, so the next start can continue here.
          ...(isLast ? { reserved_seq: turn.lastSeq } : {}),
          commit_seq: turn.firstSeq,
          ...conversationIn(turn),
          archived_at: null,
          archiving_until: null,
          ...(files === undefined ? {} : { files_id: files.filesId }),
        })
        .where('session_id', '=', turn.sessionId)
        .execute();
      if (stored.length > 0 || session.has_transcript_chunks) {
        await noteTranscriptChunks(transaction, turn.sessionId);
      }
      await countKeptBytes(transaction, turn.sessionId);
      await checkQuota(transaction, turn.sessionId, session, this.#tenantBytes);
      return 'committed';
    });
  }

  /** See {@link beginNumbering}. */
  beginNumbering(numberer: Numberer): Promise<ReservedNumbers | undefined> {
    return beginNumbering(this.#db, numberer);
  }

  /** See {@link extendNumbering}. */
  extendNumbering(numberer: Numberer, after: number): Promise<ReservedNumbers | undefined> {
    return extendNumbering(this.#db, numberer, after);
  }

  /** The stored state of a session. Undefined when the session does not exist. */
  async state(sessionId: string): Promise<StoredState | undefined> {
    return this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (transaction) => {
        const session = await transaction
          .selectFrom('sessions')
          .select([
            'generation',
            'last_seq',
            'conversation',
            'conversation_chunks',
            'conversation_bytes',
            'files_id',
          ])
          .where('session_id', '=', sessionId)
          .executeTakeFirst();
        if (session === undefined) return undefined;
        const rows = await transaction
          .selectFrom('session_frames')
          .select(['first_seq', 'frames', 'chunk_ids', 'size_bytes'])
          .where('session_id', '=', sessionId)
          .orderBy('first_seq')
          .execute();
        const lastSeq = Number(session.last_seq);
        return {
          generation: session.generation,
          lastSeq,
          conversation: contentOf(
            session.conversation,
            session.conversation_chunks,
            session.conversation_bytes,
          ),
          filesId: session.files_id ?? undefined,
          manifest: await manifestOf(transaction, sessionId, session.files_id),
          frames: rows.flatMap((row) => contentOf(row.frames, row.chunk_ids, row.size_bytes) ?? []),
          firstSeq: rows[0] === undefined ? lastSeq + 1 : Number(rows[0].first_seq),
        };
      });
  }

  /** See {@link claimUnarchived}. */
  claimUnarchived(
    endedSeconds: number,
    claimSeconds: number,
  ): Promise<UnarchivedSession | undefined> {
    return claimUnarchived(this.#db, endedSeconds, claimSeconds);
  }

  /** See {@link findTranscriptObject}. */
  transcriptObject(sessionId: string): Promise<string | undefined> {
    return findTranscriptObject(this.#db, sessionId);
  }

  /** See {@link findInline}. */
  inline(sessionId: string): Promise<InlineTranscript | undefined> {
    return findInline(this.#db, sessionId);
  }

  /** See {@link archive}. */
  archive(sessionId: string, transcript: ArchivedTranscript): Promise<boolean> {
    return archive(this.#db, sessionId, transcript);
  }

  /** `baseSeq`: the number before the first one of this start; numbers below it may be missing without a gap. */
  async #keep(transaction: Transaction<Schema>, turn: Turn, baseSeq: number): Promise<void> {
    const { sessionId, frames, framesFrom = turn.firstSeq } = turn;
    if (sizeOf(frames) === 0) return;
    const kept = isStored(frames)
      ? { frames, firstSeq: framesFrom }
      : newestFrames(frames, framesFrom, this.#maxBytes);
    // A repeated turn, or one with different bounds that a worker sends after a crash.
    await transaction
      .deleteFrom('session_frames')
      .where('session_id', '=', sessionId)
      .where('last_seq', '>=', sql<string>`${kept.firstSeq}`)
      .execute();
    // Removes frames before a gap, so that a replay has no gaps.
    await sql`
      delete from session_frames where session_id = ${sessionId}
        and ${kept.firstSeq - 1}::bigint <> ${baseSeq}::bigint
        and not exists (select from session_frames last
          where last.session_id = ${sessionId} and last.last_seq = ${kept.firstSeq - 1})`.execute(
      transaction,
    );
    await transaction
      .insertInto('session_frames')
      .values({
        session_id: sessionId,
        first_seq: kept.firstSeq,
        last_seq: turn.lastSeq,
        ...(isStored(kept.frames)
          ? {
              frames: null,
              chunk_ids: joinIds(kept.frames.chunkIds),
              size_bytes: kept.frames.sizeBytes,
            }
          : { frames: kept.frames }),
      })
      .execute();
    await sql`
      delete from session_frames using (
        select first_seq, sum(coalesce(size_bytes, octet_length(frames)))
          over (order by first_seq desc) as bytes
        from session_frames where session_id = ${sessionId}
      ) sized
      where session_frames.session_id = ${sessionId} and session_frames.first_seq = sized.first_seq
        and sized.bytes > ${this.#maxBytes}`.execute(transaction);
  }
}

/** Most sessions have none, and their turns need not look for those that are no longer used. */
const hasTranscriptChunks = sql<boolean>`exists (select from session_chunks chunks
  where chunks.session_id = sessions.session_id and of_transcript)`;

/** The columns that a turn's conversation changes. */
function conversationIn({ conversation }: Turn) {
  if (conversation === undefined) return {};
  return isStored(conversation)
    ? storedConversation(conversation)
    : { conversation, conversation_chunks: null, conversation_bytes: null };
}

/** Content in the database counts, if there is any: only a version that does not know of chunks leaves both. */
function contentOf(
  bytes: Buffer | null,
  chunkIds: Buffer | null,
  sizeBytes: string | null,
): Content | undefined {
  if (bytes !== null) return bytes;
  if (chunkIds === null) return undefined;
  return { sizeBytes: Number(sizeBytes), chunkIds: splitIds(chunkIds) };
}

function isOlder(turn: Turn, lastSeq: number, commitSeq: number): boolean {
  return turn.lastSeq < lastSeq || (turn.lastSeq === lastSeq && turn.firstSeq < commitSeq);
}

/** Undefined when the session has no files, or has them in the database. */
async function manifestOf(
  transaction: Transaction<Schema>,
  sessionId: string,
  filesId: string | null,
): Promise<Manifest | undefined> {
  const manifest = filesId === null ? undefined : await findManifest(transaction, sessionId);
  return manifest?.filesId === filesId ? manifest : undefined;
}

/** The last frames that fit into `maxBytes`, and the number of the first of them. Each line is one frame. */
export function newestFrames(
  frames: Buffer,
  firstSeq: number,
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
