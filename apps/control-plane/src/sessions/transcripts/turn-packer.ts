import { LIMITS, ServiceError } from '@svc/contract';
import { openDeadline } from '@svc/service-kit/concurrency';
import { type Content, newestFrames, TooManyUnusedChunks } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { TranscriptChunks, TranscriptOwner } from './transcript-chunks.ts';

const KIB = 1024;
/** What is not larger stays in the database, where a commit costs no request to the object store. */
const INLINE_CONVERSATION_BYTES = 128 * KIB;
const INLINE_FRAMES_BYTES = 256 * KIB;
/** How long a turn waits for the object store. */
const WAIT_MS = 2_000;
/** How long turns do without the object store after it has failed. */
const PAUSE_MS = 30_000;

export interface TurnPackerParts {
  readonly chunks: Pick<TranscriptChunks, 'store'>;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
  /** Default 2 seconds. */
  readonly waitMs?: number;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

/** The frames and the conversation of a turn, as a worker sends them. */
export interface TurnContent {
  readonly frames: Buffer;
  readonly firstSeq: number;
  readonly conversation?: Buffer;
}

/** The same for the transaction of the turn. */
export interface PackedTurn {
  readonly frames: Content;
  readonly framesFrom: number;
  readonly conversation?: Content;
}

/**
 * Moves what is large in a turn to the object store, before the turn is committed. A turn never depends on the object
 * store: while that fails, everything stays in the database.
 */
export class TurnPacker {
  readonly #parts: TurnPackerParts;
  readonly #now: () => number;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: TurnPackerParts) {
    this.#parts = parts;
    this.#now = parts.now ?? (() => performance.now());
  }

  /**
   * Never fails because of the object store.
   * @throws ServiceError `session_storage_full` when the tenant has uploaded as much that no session uses as it may
   */
  async pack(owner: TranscriptOwner, turn: TurnContent): Promise<PackedTurn> {
    const inline = keptInline(turn);
    const isLarge =
      inline.frames.length > INLINE_FRAMES_BYTES ||
      (inline.conversation?.length ?? 0) > INLINE_CONVERSATION_BYTES;
    if (!isLarge || this.#now() < this.#pausedUntil) return inline;
    using deadline = openDeadline(undefined, this.#parts.waitMs ?? WAIT_MS);
    const failed = new AbortController();
    const signal = AbortSignal.any([deadline.signal, failed.signal]);
    const store = async (content: Buffer, most: number): Promise<Content> =>
      content.length > most ? this.#parts.chunks.store(owner, content, signal) : content;
    const storing = [
      store(inline.frames, INLINE_FRAMES_BYTES),
      inline.conversation && store(inline.conversation, INLINE_CONVERSATION_BYTES),
    ] as const;
    try {
      const [frames, conversation] = await Promise.all(storing);
      return { ...inline, frames, ...(conversation === undefined ? {} : { conversation }) };
    } catch (err) {
      // The first failure ends the other upload, so that nothing runs on after this call.
      failed.abort(err);
      await Promise.allSettled(storing);
      if (err instanceof TooManyUnusedChunks) {
        throw new ServiceError('session_storage_full', undefined, { cause: err });
      }
      this.#pausedUntil = this.#now() + PAUSE_MS;
      const session = owner.sessionId;
      this.#parts.logger.warn(
        { err, session },
        'cannot store a turn as objects; it goes to the database',
      );
      return inline;
    }
  }
}

/** The turn without the frames that would not be kept. */
function keptInline({ frames, firstSeq, conversation }: TurnContent) {
  const kept = newestFrames(frames, firstSeq, LIMITS.sessionHistoryBytes);
  return {
    frames: kept.frames,
    framesFrom: kept.firstSeq,
    ...(conversation === undefined ? {} : { conversation }),
  };
}
