import {
  type CreateSessionRequest,
  DEFAULT_SET,
  givenSize,
  makeId,
  ServiceError,
  type SessionAccess,
} from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { IdempotencyHold, NewSession, SessionRow, Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { DefaultModels } from '../agents/default-models.ts';
import type { Caller } from '../auth/caller.ts';
import type { AgentBuilds } from '../catalogue/agent-builds.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { CreateOptions } from '../sandboxes/create.ts';
import { IdempotentCreate } from '../sandboxes/idempotent-create.ts';
import { settleCreation } from '../sandboxes/settle.ts';
import type { SandboxStarter } from '../sandboxes/start.ts';
import type { SecretBundles } from '../secrets/secret-bundles.ts';
import type { SessionAccessIssuer } from './access.ts';
import { sessionApp } from './app.ts';
import { openSessionBundles, type SessionBundles } from './bundles.ts';
import { launch, ttlOf } from './launch.ts';
import { newLease, withHeldLease } from './lease.ts';
import { checkLlmChoice, chooseModel, type LlmChoice } from './llm.ts';

/** Services that start sessions. */
export interface SessionParts {
  readonly store: Store;
  readonly starter: SandboxStarter;
  readonly secretBundles: Pick<SecretBundles, 'reveal'>;
  readonly catalogue: Catalogue;
  readonly builds: AgentBuilds;
  readonly addresses: EgressPolicy;
  readonly models: DefaultModels;
  readonly access: SessionAccessIssuer;
  /** The most sessions that a tenant may keep. */
  readonly sessionsPerTenant: number;
}

/** The stored answer of a request with an idempotency key. The token is derived from it, the same each time. */
interface Created {
  readonly chat_session_id: string;
  readonly expires_at: string;
}

/** A new session without its ids, and its secret bundles. */
interface Plan {
  readonly facts: Omit<NewSession, 'sessionId' | 'vmId'>;
  readonly bundles: SessionBundles['bundles'];
}

/** Creates sessions, each with its own sandbox. */
export class SessionCreator {
  readonly #parts: SessionParts;
  readonly #idempotent: IdempotentCreate<Created>;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#idempotent = new IdempotentCreate(parts.store.idempotency, 'sessions.create');
  }

  /**
   * Returns once the sandbox of the session runs. When the caller leaves, the session is rolled back, unless the
   * request has an idempotency key.
   * @throws ServiceError for a broken rule, and the errors of {@link SandboxStarter.start}
   */
  async create(
    caller: Caller,
    request: CreateSessionRequest,
    { idempotencyKey, signal }: CreateOptions,
  ): Promise<SessionAccess> {
    const { tenantId } = caller;
    const make = async (id: string, until: AbortSignal, hold?: IdempotencyHold) =>
      this.#start(id, await this.#plan(caller, request), until, hold);
    if (idempotencyKey === undefined) {
      return this.#parts.access.grant(await make(uuidv7(), signal));
    }
    return this.#grant(
      await this.#idempotent.run({
        tenantId,
        key: idempotencyKey,
        body: request,
        subject: uuidv7(),
        signal,
        create: async (id, hold) => createdOf(await make(id, new AbortController().signal, hold)),
        settle: (id) => this.#settle(id),
      }),
    );
  }

  /** Checks the rules in this order: names, the request itself, the contents of its bundles. */
  async #plan({ tenantId }: Caller, request: CreateSessionRequest): Promise<Plan> {
    const { secretBundles, catalogue, builds, addresses, models } = this.#parts;
    const { agent, app, llm } = request;
    const choice: LlmChoice = {
      agent: agent.kind,
      vendor: llm.vendor,
      model: llm.model,
      baseUrl: llm.base_url,
    };
    const appJson = sessionApp(request, catalogue.apps);
    const { kind, version } = agent;
    await builds.check({ kind, version, template: request.template, path: '/agent/version' });
    await checkLlmChoice(choice, addresses);
    const names = [...new Set(request.secrets ?? [])];
    const { bundles, values } = await openSessionBundles(
      secretBundles,
      tenantId,
      names,
      'bundle_not_found',
    );
    const model = await chooseModel(choice, values, models, addresses);
    const facts = {
      tenantId,
      agent: agent.kind,
      agentVersion: agent.version,
      appId: app.id,
      setId: app.set_id ?? DEFAULT_SET,
      app: appJson,
      template: request.template,
      size: givenSize(request),
      vendor: llm.vendor,
      requestedModel: llm.model,
      // The parsed form is the one that was checked.
      baseUrl: llm.base_url === undefined ? undefined : new URL(llm.base_url).href,
      model,
      secrets: names,
      userId: request.user_id,
      ttlSeconds: ttlOf(request),
    };
    return { facts, bundles };
  }

  async #start(
    sessionId: string,
    { facts, bundles }: Plan,
    signal: AbortSignal,
    hold: IdempotencyHold | undefined,
  ): Promise<SessionRow> {
    const { store, starter } = this.#parts;
    const lease = newLease(sessionId);
    const vmId = makeId('sandbox', uuidv7());
    const rules = { hold, most: this.#parts.sessionsPerTenant };
    const session = await store.sessions.insert({ ...facts, sessionId, vmId }, lease, rules);
    if (session === 'key_taken_over') throw new ServiceError('idempotency_in_progress');
    if (session === 'session_limit') throw new ServiceError('session_limit_reached');
    return withHeldLease(store.sessions, lease, async () => {
      try {
        const { ttlSeconds } = facts;
        await launch(starter, { session, bundles, ttlSeconds, resumed: false, hold }, signal);
        return session;
      } catch (error) {
        // The session was never announced. If the database fails as well, the sweeper finds it without a sandbox.
        await store.sessions.forget(sessionId).catch(() => undefined);
        throw error;
      }
    });
  }

  /** The session that an earlier attempt did create. What it left otherwise is removed. */
  async #settle(sessionId: string): Promise<Created | undefined> {
    const { sessions, sandboxes } = this.#parts.store;
    const session = await sessions.find(sessionId);
    if (session === undefined) return undefined;
    // Somebody knows a session that has been resumed.
    const started =
      session.generation > 1 || (await settleCreation(sandboxes, session.vm_id)) !== undefined;
    if (started) return createdOf(session);
    await sessions.forget(sessionId);
    return undefined;
  }

  async #grant(created: Created): Promise<SessionAccess> {
    const session = await this.#parts.store.sessions.find(created.chat_session_id);
    // Announced sessions stay on record.
    if (session === undefined) throw new Error(`Session ${created.chat_session_id} is gone.`);
    return this.#parts.access.grant({ ...session, expires_at: new Date(created.expires_at) });
  }
}

function createdOf(session: Pick<SessionRow, 'session_id' | 'expires_at'>): Created {
  return { chat_session_id: session.session_id, expires_at: session.expires_at.toISOString() };
}
