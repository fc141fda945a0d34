import { type ResumedSession, type ResumeSessionRequest, ServiceError } from '@svc/contract';
import type { SessionRow, Store } from '@svc/store';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';
import type { SessionAccessIssuer } from './access.ts';
import { isSessionId } from './find.ts';
import { ttlOf } from './launch.ts';
import { withSessionLease } from './lease.ts';
import type { SessionRestarter } from './restart.ts';
import type { SessionStopper } from './stop.ts';

interface SessionResumerParts {
  readonly store: Pick<Store, 'sessions'>;
  readonly restarter: SessionRestarter;
  readonly stopper: SessionStopper;
  readonly access: SessionAccessIssuer;
  readonly audit: AuditTrail;
}

/** Resumes sessions at the request of their owners. */
export class SessionResumer {
  readonly #parts: SessionResumerParts;

  constructor(parts: SessionResumerParts) {
    this.#parts = parts;
  }

  /**
   * Returns once the new sandbox runs. An active session is stopped gracefully first, so that it continues from
   * its newest state. If no sandbox can be started, the session keeps the status it had after that.
   * @throws ServiceError `session_not_found`, `session_of_another_tenant`, `session_starting`, and the errors of
   *   {@link SessionRestarter}
   */
  async resume(
    caller: Caller,
    request: ResumeSessionRequest,
    signal: AbortSignal,
  ): Promise<ResumedSession> {
    const { store, access, restarter, stopper } = this.#parts;
    const found = await this.#findOwn(caller, request.chat_session_id);
    return withSessionLease(store.sessions, found.session_id, async (session) => {
      const restart = await restarter.prepare(session, ttlOf(request));
      // A caller that has left does not want its running session stopped.
      signal.throwIfAborted();
      const stopped = await stopper.stop(session);
      const resumed = await restarter.start(stopped, restart, signal);
      return {
        ...(await access.grant(resumed)),
        resumed_from: { previous_status: session.status },
      };
    });
  }

  async #findOwn(caller: Caller, sessionId: string): Promise<SessionRow> {
    const { store } = this.#parts;
    const session = isSessionId(sessionId) ? await store.sessions.find(sessionId) : undefined;
    if (session === undefined) throw new ServiceError('session_not_found');
    if (session.tenant_id !== caller.tenantId) {
      await this.#recordDenial(caller, session);
      throw new ServiceError('session_of_another_tenant');
    }
    return session;
  }

  /** The record belongs to the owner of the session. Neither account learns of the other; operators see both. */
  #recordDenial(caller: Caller, session: SessionRow): Promise<void> {
    const { session_id, tenant_id } = session;
    return this.#parts.audit.appendRepeated(
      { event: 'cross_tenant_resume_denied', tenantId: tenant_id },
      { chat_session_id: session_id, owner_tenant_id: tenant_id },
      { caller_tenant_id: caller.tenantId, caller_key_id: caller.keyId },
    );
  }
}
