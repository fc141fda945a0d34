import { type CreateSessionRequest, makeId, type SessionAccess } from '@svc/contract';
import type { EgressPolicy } from '@svc/egress';
import type { NewSession, SessionRow, Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { DefaultModels } from '../agents/models.ts';
import type { Caller } from '../auth/caller.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { CreateOptions } from '../sandboxes/create.ts';
import { IdempotentCreate } from '../sandboxes/idempotent-create.ts';
import type { SandboxStarter } from '../sandboxes/start.ts';
import type { SecretBundles } from '../secrets/secret-bundles.ts';
import type { SessionAccessDesk } from './access.ts';
import { DEFAULT_SET, sessionApp } from './app.ts';
import { openSessionBundles, type SessionBundles } from './bundles.ts';
import { launch, ttlOf } from './launch.ts';
import { holding, newLease } from './lease.ts';
import { checkLlmWish, chooseModel, type LlmWish } from './llm.ts';

/** What sessions are started with. */
export interface SessionParts {
  readonly store: Store;
  readonly starter: SandboxStarter;
  readonly secretBundles: Pick<SecretBundles, 'reveal'>;
  readonly catalogue: Catalogue;
  readonly addresses: EgressPolicy;
  readonly models: DefaultModels;
  readonly access: SessionAccessDesk;
}

/** What a keyed request keeps of its answer: the token is made anew from it, the same each time. */
interface Created {
  readonly chat_session_id: string;
  readonly expires_at: string;
}

/** Everything of a new session but its ids, and the bundles that it is started with. */
interface Plan {
  readonly facts: Omit<NewSession, 'sessionId' | 'vmId'>;
  readonly bundles: SessionBundles['bundles'];
}

/** Creates sessions, each with a sandbox of its own. */
export class SessionCreator {
  readonly #parts: SessionParts;
  readonly #idempotent: IdempotentCreate<Created>;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#idempotent = new IdempotentCreate(parts.store.idempotency, 'sessions.create');
  }

  /**
   * Answers once the session's sandbox runs. A caller that leaves has it taken back, unless it named a key.
   * @throws ServiceError for what the request breaks, and what a sandbox cannot be made for
   */
  async create(
    caller: Caller,
    request: CreateSessionRequest,
    { idempotencyKey, signal }: CreateOptions,
  ): Promise<SessionAccess> {
    const { tenantId } = caller;
    const plan = await this.#plan(caller, request);
    const make = (id: string, until: AbortSignal) => this.#start(id, plan, until);
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
        create: async (id) => createdOf(await make(id, new AbortController().signal)),
        recover: (id) => this.#recover(id),
      }),
    );
  }

  /** The rules in their order: names, then the request alone, then what its bundles hold. */
  async #plan({ tenantId }: Caller, request: CreateSessionRequest): Promise<Plan> {
    const { secretBundles, catalogue, addresses, models } = this.#parts;
    const { agent, app, llm } = request;
    const wish: LlmWish = {
      agent: agent.kind,
      vendor: llm.vendor,
      model: llm.model,
      baseUrl: llm.base_url,
    };
    const appJson = sessionApp(app, catalogue.entries);
    await checkLlmWish(wish, addresses);
    const names = [...new Set(request.secrets ?? [])];
    const { bundles, values } = await openSessionBundles(
      secretBundles,
      tenantId,
      names,
      'bundle_not_found',
    );
    const model = await chooseModel(wish, values, models, addresses);
    const facts = {
      tenantId,
      agent: agent.kind,
      agentVersion: agent.version,
      appId: app.id,
      setId: app.set_id ?? DEFAULT_SET,
      app: appJson,
      template: request.template,
      vendor: llm.vendor,
      requestedModel: llm.model,
      // As it was checked: parsing has removed what is no part of an address.
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
  ): Promise<SessionRow> {
    const { store, starter } = this.#parts;
    const lease = newLease(sessionId);
    const vmId = makeId('sandbox', uuidv7());
    const session = await store.sessions.insert({ ...facts, sessionId, vmId }, lease);
    return holding(store.sessions, lease, async () => {
      try {
        const { ttlSeconds } = facts;
        await launch(starter, { session, bundles, ttlSeconds, resumed: false }, signal);
        return session;
      } catch (error) {
        // Nobody was told of it. Where the database fails as well, it is found without a sandbox later.
        await store.sessions.forget(sessionId).catch(() => undefined);
        throw error;
      }
    });
  }

  /** A session that an interrupted request has made after all. */
  async #recover(sessionId: string): Promise<Created | undefined> {
    const session = await this.#parts.store.sessions.route(sessionId);
    if (session === undefined || session.vm_id === null) return undefined;
    return createdOf(session);
  }

  async #grant(created: Created): Promise<SessionAccess> {
    const session = await this.#parts.store.sessions.find(created.chat_session_id);
    // It cannot have gone: sessions that were answered stay on record.
    if (session === undefined) throw new Error(`Session ${created.chat_session_id} is gone.`);
    return this.#parts.access.grant({ ...session, expires_at: new Date(created.expires_at) });
  }
}

function createdOf(session: Pick<SessionRow, 'session_id' | 'expires_at'>): Created {
  return { chat_session_id: session.session_id, expires_at: session.expires_at.toISOString() };
}
