import { openDeadline, sleep } from '@svc/service-kit/concurrency';
import { FailureLogs } from '@svc/service-kit/logging';
import { type FrameRow, type InlineTranscript, type Store, TooManyUnusedChunks } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { TranscriptChunks, TranscriptOwner } from './transcript-chunks.ts';

const INTERVAL_MS = 30_000;
/** Later than the last turn of almost every session, and than many resumes. */
const ENDED_SECONDS = 600;
const SESSION_MS = 120_000;
/** Longer than one session takes. */
const CLAIM_SECONDS = 300;
/** Frames of several turns become one row up to this size. A replay can lose old ones only by the row. */
const ROW_BYTES = 1024 * 1024;

export interface ArchiveTranscriptsParts {
  readonly store: Pick<Store, 'sessionHistory'>;
  readonly chunks: Pick<TranscriptChunks, 'store'>;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
}

export interface ArchiveNextParts extends ArchiveTranscriptsParts {
  /** By account, each of whose sessions may be refused again and again. */
  readonly refusals: FailureLogs;
}

/**
 * Moves the transcripts of sessions that have ended from the database to the object store, until the signal aborts. Any
 * number of control planes may do so at once: each claims other sessions. One that fails is due again after its claim.
 */
export async function archiveTranscripts(
  parts: ArchiveTranscriptsParts,
  signal: AbortSignal,
): Promise<void> {
  const refusals = new FailureLogs();
  while (!signal.aborted) {
    try {
      while (await archiveNext({ ...parts, refusals }, ENDED_SECONDS, signal))
        signal.throwIfAborted();
    } catch (err) {
      if (signal.aborted) return;
      parts.logger.warn({ err }, 'cannot move transcripts to the object store; will try again');
    }
    await sleep(INTERVAL_MS, signal, { ref: false });
  }
}

/**
 * Moves the transcript of one session that ended at least this long ago, unless its tenant has too many unused chunks. False
 * when there is none.
 */
export async function archiveNext(
  parts: ArchiveNextParts,
  endedSeconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { store, logger, refusals } = parts;
  const session = await store.sessionHistory.claimUnarchived(endedSeconds, CLAIM_SECONDS);
  if (session === undefined) return false;
  try {
    await archiveTranscript(parts, session, signal);
  } catch (err) {
    if (!(err instanceof TooManyUnusedChunks)) throw err;
    const { sessionId, tenantId } = session;
    refusals.note(tenantId, (omitted) =>
      logger.warn({ err, session: sessionId, omitted }, 'cannot move a transcript; will try again'),
    );
  }
  return true;
}

async function archiveTranscript(
  { store, chunks }: Pick<ArchiveTranscriptsParts, 'store' | 'chunks'>,
  session: TranscriptOwner,
  signal: AbortSignal,
): Promise<void> {
  using deadline = openDeadline(signal, SESSION_MS);
  const put = (content: Buffer, owner: TranscriptOwner = session) =>
    chunks.store(owner, content, deadline.signal);
  const inline = await store.sessionHistory.inline(session.sessionId);
  if (inline === undefined) return;
  const { conversation } = inline;
  const frames: { was: FrameRow<Buffer>[]; is: Awaited<ReturnType<typeof put>> }[] = [];
  for (const was of inRows(inline)) {
    frames.push({ was, is: await put(Buffer.concat(was.map((row) => row.frames))) });
  }
  await store.sessionHistory.archive(session.sessionId, {
    frames,
    ...(conversation === undefined
      ? {}
      : { conversation: { was: conversation, is: await put(conversation) } }),
  });
}

/**
 * Groups of rows without a gap between them. A group exceeds the size only if it is one row. The newest turn stays apart,
 * since its worker may send it again.
 */
function inRows({ frames: rows, commitSeq }: InlineTranscript): FrameRow<Buffer>[][] {
  const groups: FrameRow<Buffer>[][] = [];
  let size = 0;
  for (const row of rows) {
    const group = groups.at(-1);
    size += row.frames.length;
    const follows = group?.at(-1)?.lastSeq === row.firstSeq - 1 && row.firstSeq < commitSeq;
    if (follows && size <= ROW_BYTES) {
      group.push(row);
    } else {
      groups.push([row]);
      size = row.frames.length;
    }
  }
  return groups;
}
