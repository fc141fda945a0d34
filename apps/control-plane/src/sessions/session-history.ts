import { type CommitTurnRequest, ServiceError, type SessionState } from '@svc/contract';
import type { Store } from '@svc/store';
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
      frames: state.frames.toString(),
      first_seq: state.firstSeq,
    };
  }

  /**
   * Commits a turn. The worker of an ended sandbox may still do so until the session is resumed.
   * @throws ServiceError `session_not_found`, `stale_generation`, `file_not_found` for files that were not uploaded
   */
  async commit(workerId: string, sessionId: string, turn: CommitTurnRequest): Promise<void> {
    const { generation, vm_id: vmId, conversation, files_id: filesId } = turn;
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
      ...(filesId === undefined ? {} : { filesId }),
    });
    if (outcome === 'stale') throw new ServiceError('stale_generation');
    if (outcome === 'unknown_session') throw new ServiceError('session_not_found');
    if (outcome === 'unknown_files') throw new ServiceError('file_not_found');
  }
}

/** The frames with a final newline, so that turns can be concatenated. */
function linesOf(frames: string): Buffer {
  const bytes = Buffer.from(frames);
  return bytes.length === 0 || bytes.at(-1) === NEWLINE ? bytes : Buffer.from(`${frames}\n`);
}
