import { DamagedChunkError } from '@svc/chunks';
import {
  type CommitTurnRequest,
  type FilesManifest,
  type ReservedFrames,
  type ReserveFramesRequest,
  ServiceError,
  type SessionState,
} from '@svc/contract';
import type { Content, Manifest, Store } from '@svc/store';
import { chunkBytesOf, chunkTextOf } from '../chunks/chunk-ids.ts';
import { onObjects } from '../objects/object-failures.ts';
import { isSessionId } from './find.ts';
import type { TranscriptChunks, TranscriptOwner } from './transcripts/transcript-chunks.ts';
import type { TurnPacker } from './transcripts/turn-packer.ts';

const NEWLINE = 10;
const EMPTY = Buffer.alloc(0);

export interface SessionHistoryParts {
  readonly store: Pick<Store, 'sessions' | 'sessionHistory'>;
  readonly transcripts: Pick<TranscriptChunks, 'read'>;
  readonly packer: Pick<TurnPacker, 'pack'>;
}

/**
 * The turns of sessions. A worker has access to the sessions of its own sandboxes; any other session does not
 * exist for it.
 */
export class SessionHistory {
  readonly #store: Pick<Store, 'sessions' | 'sessionHistory'>;
  readonly #transcripts: Pick<TranscriptChunks, 'read'>;
  readonly #packer: Pick<TurnPacker, 'pack'>;

  constructor({ store, transcripts, packer }: SessionHistoryParts) {
    this.#store = store;
    this.#transcripts = transcripts;
    this.#packer = packer;
  }

  /**
   * The state that a session continues from, for the worker of its sandbox.
   * @throws ServiceError `session_not_found`, `object_store_unavailable`, `session_files_damaged`
   */
  async state(workerId: string, sessionId: string): Promise<SessionState> {
    const { sessions, sessionHistory } = this.#store;
    const held = isSessionId(sessionId) && (await sessions.heldBy(workerId, sessionId, 'current'));
    const state = held ? await sessionHistory.state(sessionId) : undefined;
    if (!held || state === undefined) throw new ServiceError('session_not_found');
    const [conversation, ...frames] = await this.#read({ sessionId, tenantId: held.tenant_id }, [
      state.conversation ?? EMPTY,
      ...state.frames,
    ]);
    return {
      generation: state.generation,
      last_seq: state.lastSeq,
      ...(state.conversation === undefined ? {} : { conversation: String(conversation) }),
      ...(state.filesId === undefined ? {} : { files_id: state.filesId }),
      ...(state.manifest === undefined ? {} : { manifest: manifestOf(state.manifest) }),
      frames: Buffer.concat(frames).toString(),
      first_seq: state.firstSeq,
    };
  }

  /**
   * Reserves numbers for frames that a worker is about to show.
   * @throws ServiceError `session_not_found`, `stale_generation`
   */
  async reserve(
    workerId: string,
    sessionId: string,
    { generation, vm_id: vmId, numberer, after }: ReserveFramesRequest,
  ): Promise<ReservedFrames> {
    const { sessions, sessionHistory } = this.#store;
    const known = isSessionId(sessionId) && !vmId.includes('\0');
    if (!(known && (await sessions.heldBy(workerId, sessionId, { generation, vmId })))) {
      throw new ServiceError('session_not_found');
    }
    const numbering = { sessionId, generation, numberedBy: numberer };
    const reserved = await (after === undefined
      ? sessionHistory.beginNumbering(numbering)
      : sessionHistory.extendNumbering(numbering, after));
    if (reserved === undefined) throw new ServiceError('stale_generation');
    return { base_seq: reserved.baseSeq, reserved_seq: reserved.reservedSeq };
  }

  /**
   * Commits a turn. The worker of an ended sandbox may still do so until the session is resumed.
   * @throws ServiceError `session_not_found`, `stale_generation`, `session_erased`, `session_storage_full`,
   *   `file_not_found` for files that are not stored
   */
  async commit(workerId: string, sessionId: string, turn: CommitTurnRequest): Promise<void> {
    const { generation, vm_id: vmId, conversation, last_of: lastOf } = turn;
    const known = isSessionId(sessionId) && !vmId.includes('\0');
    const held =
      known && (await this.#store.sessions.heldBy(workerId, sessionId, { generation, vmId }));
    if (!held) throw new ServiceError('session_not_found');
    if (turn.last_seq < turn.first_seq - 1) throw new ServiceError('validation_failed');
    const rest = {
      sessionId,
      generation,
      firstSeq: turn.first_seq,
      lastSeq: turn.last_seq,
      ...filesIn(turn),
      ...(lastOf === undefined ? {} : { lastOf }),
    };
    const inline = {
      frames: linesOf(turn.frames),
      ...(conversation === undefined ? {} : { conversation: Buffer.from(conversation) }),
    };
    // A turn that will be refused needs no objects.
    const packed =
      held.generation === generation && held.erased_at === null
        ? await this.#packer.pack(
            { sessionId, tenantId: held.tenant_id },
            { firstSeq: turn.first_seq, ...inline },
          )
        : inline;
    const { sessionHistory } = this.#store;
    let outcome = await sessionHistory.commit({ ...rest, ...packed });
    // The chunks were given up, because it took longer than an hour to get here.
    if (outcome === 'unknown_chunks') outcome = await sessionHistory.commit({ ...rest, ...inline });
    if (outcome === 'stale') throw new ServiceError('stale_generation');
    if (outcome === 'erased') throw new ServiceError('session_erased');
    if (outcome === 'storage_full') throw new ServiceError('session_storage_full');
    if (outcome === 'unknown_session') throw new ServiceError('session_not_found');
    if (outcome === 'unknown_files') throw new ServiceError('file_not_found');
  }

  async #read(owner: TranscriptOwner, contents: readonly Content[]): Promise<Buffer[]> {
    try {
      return await onObjects(() =>
        Promise.all(contents.map((content) => this.#transcripts.read(owner, content))),
      );
    } catch (cause) {
      if (!(cause instanceof DamagedChunkError)) throw cause;
      throw new ServiceError('session_files_damaged', undefined, { cause });
    }
  }
}

/** @throws ServiceError `file_not_found` for files without a manifest, which only uploads to the database had */
function filesIn({ files_id: filesId, manifest }: CommitTurnRequest): { files?: Manifest } {
  if (filesId === undefined) return {};
  if (manifest === undefined) throw new ServiceError('file_not_found');
  const chunkIds = manifest.chunks.map(chunkBytesOf);
  return { files: { filesId, sizeBytes: manifest.size_bytes, chunkIds } };
}

function manifestOf({ sizeBytes, chunkIds }: Manifest): FilesManifest {
  return { size_bytes: sizeBytes, chunks: chunkIds.map(chunkTextOf) };
}

/** The frames with a final newline, so that turns can be concatenated. */
function linesOf(frames: string): Buffer {
  const bytes = Buffer.from(frames);
  return bytes.length === 0 || bytes.at(-1) === NEWLINE ? bytes : Buffer.from(`${frames}\n`);
}
