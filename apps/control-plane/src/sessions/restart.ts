import { makeId, ServiceError } from '@svc/contract';
import type { SessionRow } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import { checkAppTools } from '../agents/app-tools.ts';
import type { CreditGate } from '../billing/credit-gate.ts';
import { onObjects } from '../objects/object-failures.ts';
import { openSessionBundles, type SessionBundles } from './bundles.ts';
import type { SessionParts } from './create.ts';
import { launch } from './launch.ts';
import { checkLlmChoice, chooseModel, type LlmChoice } from './llm.ts';
import type { TranscriptChunks } from './transcripts/transcript-chunks.ts';

/** What a session starts again with. */
interface Restart {
  readonly bundles: SessionBundles['bundles'];
  readonly model: string;
  readonly ttlSeconds: number;
}

export interface SessionRestarterParts extends SessionParts {
  readonly credit: CreditGate;
  readonly transcripts: Pick<TranscriptChunks, 'check'>;
}

/** Starts sessions again, each on a new sandbox that continues from the saved state. The caller holds the session's lease. */
export class SessionRestarter {
  readonly #parts: SessionRestarterParts;

  constructor(parts: SessionRestarterParts) {
    this.#parts = parts;
  }

  /**
   * Checks that a session can start again, before it is stopped where it runs. Bundles, names, images and agents may have
   * changed since it was created, so its rules are checked again.
   * @throws ServiceError `session_erased`, `object_store_unavailable`, `secret_bundle_not_found_at_resume`,
   *   `agent_version_unavailable`, `tool_not_available`, for a rule that a rotated bundle breaks, and for lack of credit
   */
  async prepare(session: SessionRow, ttlSeconds: number): Promise<Restart> {
    const { secretBundles, builds, addresses, models, credit, transcripts } = this.#parts;
    if (session.erase_requested_at !== null) throw new ServiceError('session_erased');
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
    await credit.check(session.tenant_id);
    await onObjects(() => transcripts.check(session.session_id));
    return { bundles, model, ttlSeconds };
  }

  /**
   * Starts a session whose sandbox has ended. If no sandbox can be started, it keeps the status it had.
   * @throws ServiceError `session_starting`, `session_erased`, and the errors of {@link SandboxStarter.start}
   */
  async start(
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

  async #refusal({ session_id }: SessionRow): Promise<'session_erased' | 'session_starting'> {
    const row = await this.#parts.store.sessions.find(session_id);
    return row?.erased_at ? 'session_erased' : 'session_starting';
  }
}
