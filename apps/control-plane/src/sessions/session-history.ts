import {
  type CommitTurnRequest,
  type FilesManifest,
  type ReservedFrames,
  type ReserveFramesRequest,
  ServiceError,
  type SessionState,
} from '@svc/contract';
import type { Manifest, Store } from '@svc/store';
import { chunkBytesOf, chunkTextOf } from '../chunks/chunk-ids.ts';
import { isSessionId } from './find.ts';

const NEWLINE = 10;

/**
 * The turns of sessions. A worker has access to the sessions of its own sandboxes; any other session does not
 * exist for it.
 */
export class SessionHistory {
  readonly #store: Pick<Store, 'sessions' | 'sessionHistory'>;

  constructor(store: Pick<Store, 'sessions' | 'sessionHistory'>) {
    this.#store = store;
  }

  /** The state that a session continues from, for the worker of its sandbox. @throws ServiceError `session_not_found` */
  async state(workerId: string, sessionId: string): Promise<SessionState> {
    const { sessions, sessionHistory } = this.#store;
    const held = isSessionId(sessionId) && (await sessions.heldBy(workerId, sessionId, 'current'));
    const state = held ? await sessionHistory.state(sessionId) : undefined;
    if (state === undefined) throw new ServiceError('session_not_found');
    return {
      generation: state.generation,
      last_seq: state.lastSeq,
      ...(state.conversation === undefined ? {} : { conversation: state.conversation.toString() }),
      ...(state.filesId === undefined ? {} : { files_id: state.filesId }),
      ...(state.manifest === undefined ? {} : { manifest: manifestOf(state.manifest) }),
      frames: state.frames.toString(),
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
   * @throws ServiceError `session_not_found`, `stale_generation`, `session_erased`, `file_not_found` for files that are
   *   not stored
   */
  async commit(workerId: string, sessionId: string, turn: CommitTurnRequest): Promise<void> {
    const { generation, vm_id: vmId, conversation, last_of: lastOf } = turn;
    const known = isSessionId(sessionId) && !vmId.includes('\0');
    const held =
      known && (await this.#store.sessions.heldBy(workerId, sessionId, { generation, vmId }));
    if (!held) throw new ServiceError('session_not_found');
    if (turn.last_seq < turn.first_seq - 1) throw new ServiceError('validation_failed');
    const outcome = await this.#store.sessionHistory.commit({
      sessionId,
      generation,
      firstSeq: turn.first_seq,
      lastSeq: turn.last_seq,
      frames: linesOf(turn.frames),
      ...(conversation === undefined ? {} : { conversation: Buffer.from(conversation) }),
      ...filesIn(turn),
      ...(lastOf === undefined ? {} : { lastOf }),
    });
    if (outcome === 'stale') throw new ServiceError('stale_generation');
    if (outcome === 'erased') throw new ServiceError('session_erased');
    if (outcome === 'storage_full') throw new ServiceError('session_storage_full');
    if (outcome === 'unknown_session') throw new ServiceError('session_not_found');
    if (outcome === 'unknown_files') throw new ServiceError('file_not_found');
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
