import {
  makeId,
  type ResumedSession,
  type ResumeSessionRequest,
  ServiceError,
} from '@svc/contract';
import type { SessionRow } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import { checkAppTools } from '../agents/app-tools.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';
import type { CreditGate } from '../billing/credit-gate.ts';
import { onObjects } from '../objects/object-failures.ts';
import { openSessionBundles, type SessionBundles } from './bundles.ts';
import type { SessionParts } from './create.ts';
import { isSessionId } from './find.ts';
import { launch, ttlOf } from './launch.ts';
import { withSessionLease } from './lease.ts';
import { checkLlmChoice, chooseModel, type LlmChoice } from './llm.ts';
import type { SessionStopper } from './stop.ts';
import type { TranscriptChunks } from './transcripts/transcript-chunks.ts';

/** The parameters of a resume. */
interface Restart {
  readonly bundles: SessionBundles['bundles'];
  readonly model: string;
  readonly ttlSeconds: number;
}

interface SessionResumerParts extends SessionParts {
  readonly stopper: SessionStopper;
  readonly audit: AuditTrail;
  readonly credit: CreditGate;
  readonly transcripts: Pick<TranscriptChunks, 'check'>;
}

/** Resumes sessions, each on a new sandbox that continues from the saved state. */
export class SessionResumer {
  readonly #parts: SessionResumerParts;

  constructor(parts: SessionResumerParts) {
    this.#parts = parts;
  }

  /**
   * Returns once the new sandbox runs. An active session is stopped gracefully first, so that it continues from
   * its newest state. If no sandbox can be started, the session keeps the status it had after that.
   * @throws ServiceError `session_not_found`, `session_of_another_tenant`, `session_starting`, `session_erased`, `object_store_unavailable`,
   *   `secret_bundle_not_found_at_resume`, `agent_version_unavailable`, `tool_not_available`, for a rule that a
   *   rotated bundle breaks, and the errors of {@link SandboxStarter.start}
   */
  async resume(
    caller: Caller,
    request: ResumeSessionRequest,
    signal: AbortSignal,
  ): Promise<ResumedSession> {
    const { store, access, stopper, credit, transcripts } = this.#parts;
    const found = await this.#findOwn(caller, request.chat_session_id);
    return withSessionLease(store.sessions, found.session_id, async (session) => {
      if (session.erase_requested_at !== null) throw new ServiceError('session_erased');
      const restart = await this.#plan(session, ttlOf(request));
      // A caller that has left does not want its running session stopped.
      signal.throwIfAborted();
      // Nor does one whose new sandbox could not start.
      await credit.check(session.tenant_id);
      // Nor one that could not continue from its state.
      await onObjects(() => transcripts.check(session.session_id));
      const stopped = await stopper.stop(session);
      const resumed = await this.#start(stopped, restart, signal);
      return {
        ...(await access.grant(resumed)),
        resumed_from: { previous_status: session.status },
      };
    });
  }

  async #refusal({ session_id }: SessionRow): Promise<'session_erased' | 'session_starting'> {
    const row = await this.#parts.store.sessions.find(session_id);
    return row?.erased_at ? 'session_erased' : 'session_starting';
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
    return this.#parts.audit.append(
      {
        event: 'cross_tenant_resume_denied',
        tenantId: tenant_id,
        details: { chat_session_id: session_id, owner_tenant_id: tenant_id },
      },
      { caller_tenant_id: caller.tenantId, caller_key_id: caller.keyId },
    );
  }

  /** Bundles, names, images and agents may have changed since the session was created, so its rules are checked again. */
  async #plan(session: SessionRow, ttlSeconds: number): Promise<Restart> {
    const { secretBundles, builds, addresses, models } = this.#parts;
    const choice: LlmChoice = {
      agent: session.agent,
      vendor: session.vendor,
      model: session.requested_model ?? undefined,
      baseUrl: session.base_url ?? undefined,
    };
    const path = '/chat_session_id';
    const { agent: kind, template } = session;
    checkAppTools(kind, template, session.app ?? undefined, path);
    await builds.check({ kind, version: session.agent_version ?? undefined, template, path });
    await checkLlmChoice(choice, addresses);
    const { bundles, values } = await openSessionBundles(
      secretBundles,
      session.tenant_id,
      session.secrets,
      'secret_bundle_not_found_at_resume',
    );
    const model = await chooseModel(choice, values, models, addresses);
    return { bundles, model, ttlSeconds };
  }

  async #start(
    before: SessionRow,
    { bundles, model, ttlSeconds }: Restart,
    signal: AbortSignal,
  ): Promise<SessionRow> {
    const { store, starter } = this.#parts;
    const vmId = makeId('sandbox', uuidv7());
    const session = await store.sessions.restart(before, { vmId, ttlSeconds, model });
    // The lease keeps other requests away, but not the end of the retention.
    if (session === undefined) throw new ServiceError(await this.#refusal(before));
    try {
      await launch(starter, { session, bundles, ttlSeconds, resumed: true }, signal);
      return session;
    } catch (error) {
      // If the database fails as well, the sweeper finds the session without a sandbox.
      await store.sessions.revert(session, before).catch(() => undefined);
      throw error;
    }
  }
}
