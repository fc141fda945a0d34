import { type DeleteSessionQuery, type DeleteSessionResponse, ServiceError } from '@svc/contract';
import type { SessionRow, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import type { SandboxDeleter } from '../sandboxes/delete.ts';
import { findSession } from './find.ts';
import { withSessionLease } from './lease.ts';
import { statusOf } from './record.ts';

/** Ends sessions gracefully: their state is saved while their sandbox is torn down. Also erases what they keep. */
export class SessionStopper {
  readonly #store: Pick<Store, 'sessions' | 'sandboxes'>;
  readonly #deleter: SandboxDeleter;

  constructor(store: Pick<Store, 'sessions' | 'sandboxes'>, deleter: SandboxDeleter) {
    this.#store = store;
    this.#deleter = deleter;
  }

  /**
   * Ends a session of the caller. It can be resumed later, unless it is to be erased: then everything that it keeps is
   * gone when this settles, or, should this fail, once the session has ended.
   * @throws ServiceError `session_not_found`, `session_starting`, `worker_unreachable`
   */
  async delete(
    caller: Caller,
    sessionId: string,
    { erase = false }: DeleteSessionQuery = {},
  ): Promise<DeleteSessionResponse> {
    const found = await findSession(this.#store, caller, sessionId);
    const { sessions } = this.#store;
    const isDone = erase ? found.erased_at !== null : statusOf(found) !== 'active';
    const work = (row: SessionRow) => (erase ? this.#erase(row) : this.stop(row));
    const ended = isDone ? found : await withSessionLease(sessions, found.session_id, work);
    return {
      chat_session_id: ended.session_id,
      status: ended.status,
      ...(ended.erased_at === null ? {} : { erased_at: ended.erased_at.toISOString() }),
    };
  }

  async #erase(session: SessionRow): Promise<SessionRow> {
    const { sessions } = this.#store;
    // First, so that the sweeper can finish what this begins.
    await sessions.requestErasure(session.session_id);
    await this.stop(session);
    const erased = await sessions.eraseEnded(session.session_id);
    if (erased === undefined) throw new ServiceError('session_starting');
    return erased;
  }

  /** Ends the sandbox of a session, and thereby the session, whose lease the caller holds. Returns the ended session. */
  async stop(session: SessionRow): Promise<SessionRow> {
    if (session.status !== 'active') return session;
    const { sessions, sandboxes } = this.#store;
    const sandbox = await sandboxes.find(session.tenant_id, session.vm_id);
    if (sandbox !== undefined) await this.#deleter.stop(sandbox);
    // After an interrupted start there is no sandbox whose end would end the session.
    const closed = await sessions.close(session, 'completed');
    const ended = closed ?? (await sessions.find(session.session_id));
    if (ended === undefined || ended.status === 'active')
      throw new ServiceError('session_starting');
    return ended;
  }
}
