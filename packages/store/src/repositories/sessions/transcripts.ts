import { type Kysely, sql, type Transaction } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { isStored, joinIds, type StoredContent } from './content.ts';
import { holdChunks } from './hold-chunks.ts';
import { countKeptBytes } from './manifests.ts';

/** Frames of one row: one JSON object a line, UTF-8. */
export interface FrameRow<T> {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly frames: T;
}

/** What the database itself has of the transcript of a session. */
export interface InlineTranscript {
  readonly conversation: Buffer | undefined;
  /** First frame of the newest turn. */
  readonly commitSeq: number;
  /** In the order of their numbers. */
  readonly frames: readonly FrameRow<Buffer>[];
}

/** A session whose transcript one control plane is to move to the object store. */
export interface UnarchivedSession {
  readonly sessionId: string;
  readonly tenantId: string;
}

/** Part of a transcript that was in the database and is in the object store now. */
export interface ArchivedTranscript {
  readonly conversation?: { readonly was: Buffer; readonly is: StoredContent };
  /** Each replaces the rows that it was. */
  readonly frames: readonly {
    readonly was: readonly FrameRow<Buffer>[];
    readonly is: StoredContent;
  }[];
}

/** Holds the chunks of content that a turn names until the transaction ends. False when one is not stored. */
export async function holdTranscript(
  transaction: Transaction<Schema>,
  sessionId: string,
  contents: readonly StoredContent[],
): Promise<boolean> {
  const ids = contents.flatMap(({ chunkIds }) => chunkIds);
  return ids.length === 0 || (await holdChunks(transaction, sessionId, ids, 'transcript'));
}

/** Notes which chunks the transcript of a session contains, after it has changed. */
export async function noteTranscriptChunks(
  transaction: Transaction<Schema>,
  sessionId: string,
): Promise<void> {
  await sql`
    with lists as (
      select conversation_chunks as ids from sessions where session_id = ${sessionId}
      union all
      select chunk_ids from session_frames where session_id = ${sessionId}),
    named as (
      select distinct substring(ids from 1 + 32 * place for 32) as chunk_id
      from lists, generate_series(0, octet_length(ids) / 32 - 1) as place)
    update session_chunks
    set unused_since = case when chunk_id in (select chunk_id from named) then null else now() end
    where session_id = ${sessionId} and of_transcript
      and (unused_since is null) <> (chunk_id in (select chunk_id from named))`.execute(
    transaction,
  );
}

/**
 * Claims the session that has waited longest, since its end or its last claim, of those that ended at least this long ago and
 * whose transcript has not been moved since their last turn. No other caller gets it for `claimSeconds`. Undefined when there
 * is none.
 */
export async function claimUnarchived(
  db: Kysely<Schema>,
  endedSeconds: number,
  claimSeconds: number,
): Promise<UnarchivedSession | undefined> {
  const { rows } = await sql<{ session_id: string; tenant_id: string }>`
    update sessions set archiving_until = now() + make_interval(secs => ${claimSeconds})
    where session_id = (
      select session_id from sessions
      where ended_at < ${ago(endedSeconds)} and archived_at is null and erased_at is null
        and erase_requested_at is null and (archiving_until is null or archiving_until < now())
      order by coalesce(archiving_until, ended_at) limit 1 for no key update skip locked)
    returning session_id, tenant_id`.execute(db);
  return rows[0] && { sessionId: rows[0].session_id, tenantId: rows[0].tenant_id };
}

/** An object with part of the session's transcript. Undefined when all of the transcript is in the database. */
export async function findTranscriptObject(
  db: Kysely<Schema>,
  sessionId: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('session_chunks')
    .select('object_key')
    .where('session_id', '=', sessionId)
    .where('of_transcript', '=', true)
    .where('unused_since', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return row?.object_key;
}

/** The parts of a transcript that are in the database. */
export async function findInline(
  db: Kysely<Schema>,
  sessionId: string,
): Promise<InlineTranscript | undefined> {
  const session = await db
    .selectFrom('sessions')
    .select(['conversation', 'commit_seq'])
    .where('session_id', '=', sessionId)
    .executeTakeFirst();
  if (session === undefined) return undefined;
  const rows = await db
    .selectFrom('session_frames')
    .select(['first_seq', 'last_seq', 'frames'])
    .where('session_id', '=', sessionId)
    .orderBy('first_seq')
    .execute();
  const frames = rows.flatMap(({ first_seq, last_seq, frames }) =>
    frames === null ? [] : [{ firstSeq: Number(first_seq), lastSeq: Number(last_seq), frames }],
  );
  return {
    conversation: session.conversation ?? undefined,
    commitSeq: Number(session.commit_seq),
    frames,
  };
}

/**
 * Replaces parts of the transcript of an ended session by chunks with the same content. False, and nothing changes, when
 * the session is active or erased, a part has changed in the meantime, or a chunk is not stored.
 */
export async function archive(
  db: Kysely<Schema>,
  sessionId: string,
  { conversation, frames }: ArchivedTranscript,
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ intact: boolean }>`
      select conversation is not distinct from ${conversation?.was ?? null}::bytea as intact
      from sessions where session_id = ${sessionId} and status <> 'active' and erased_at is null
      for no key update`.execute(transaction);
    if (rows[0]?.intact !== true) return false;
    const now = await findInline(transaction, sessionId);
    if (
      !isSame(
        now?.frames ?? [],
        frames.flatMap(({ was }) => was),
      )
    )
      return false;
    const contents = [conversation?.is, ...frames.map(({ is }) => is)].filter(isStored);
    if (!(await holdTranscript(transaction, sessionId, contents))) return false;
    for (const { was, is } of frames) await replaceFrames(transaction, sessionId, was, is);
    await transaction
      .updateTable('sessions')
      .set({
        archived_at: sql<Date>`now()`,
        archiving_until: null,
        ...(conversation === undefined ? {} : storedConversation(conversation.is)),
      })
      .where('session_id', '=', sessionId)
      .execute();
    await noteTranscriptChunks(transaction, sessionId);
    await countKeptBytes(transaction, sessionId);
    return true;
  });
}

/** The columns of a conversation in the object store. */
export function storedConversation({ sizeBytes, chunkIds }: StoredContent) {
  return {
    conversation: null,
    conversation_chunks: joinIds(chunkIds),
    conversation_bytes: sizeBytes,
  };
}

async function replaceFrames(
  transaction: Transaction<Schema>,
  sessionId: string,
  was: readonly FrameRow<Buffer>[],
  is: StoredContent,
): Promise<void> {
  const [first, last] = [was[0], was.at(-1)];
  if (first === undefined || last === undefined) return;
  await sql`
    delete from session_frames where session_id = ${sessionId}
      and first_seq between ${first.firstSeq} and ${last.firstSeq}`.execute(transaction);
  await transaction
    .insertInto('session_frames')
    .values({
      session_id: sessionId,
      first_seq: first.firstSeq,
      last_seq: last.lastSeq,
      frames: null,
      chunk_ids: joinIds(is.chunkIds),
      size_bytes: is.sizeBytes,
    })
    .execute();
}

function isSame(now: readonly FrameRow<Buffer>[], was: readonly FrameRow<Buffer>[]): boolean {
  return (
    now.length === was.length &&
    now.every((row, index) => {
      const other = was[index];
      return (
        row.firstSeq === other?.firstSeq &&
        row.lastSeq === other.lastSeq &&
        row.frames.equals(other.frames)
      );
    })
  );
}
