import type { Agent, AppJson, LlmVendor, SandboxSize } from '@svc/contract';
import type { Kysely } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';
import { type IdempotencyHold, whileHeld } from '../idempotency.ts';
import { lockTenant } from '../tenants.ts';
import { fromNow, SESSION_COLUMNS } from './columns.ts';
import { eraseEnded, eraseExpired, eraseRequested, requestErasure } from './erasure.ts';
import { claim, release, renew, type SessionLease } from './lease.ts';
import { close, closeOrphans, forget, noteModel, restart, revert } from './lifecycle.ts';
import {
  countKept,
  findHeld,
  findModel,
  findRoute,
  type HeldSession,
  IS_HELD,
  listUsing,
  type RoutedSession,
  type SeenSession,
  type SessionModel,
  type SessionPage,
} from './lookup.ts';

/** A session to be started for the first time. */
export interface NewSession {
  readonly sessionId: string;
  readonly tenantId: string;
  readonly vmId: string;
  readonly agent: Agent;
  readonly agentVersion: string | undefined;
  readonly appId: string;
  readonly setId: string;
  readonly app: AppJson | undefined;
  readonly template: string;
  readonly size: SandboxSize;
  readonly vendor: LlmVendor;
  readonly requestedModel: string | undefined;
  readonly baseUrl: string | undefined;
  readonly model: string;
  readonly secrets: readonly string[];
  readonly userId: string;
  readonly ttlSeconds: number;
}

/** What decides whether a session may be added. */
export interface SessionInsertRules {
  /** The idempotency key of the request. */
  readonly hold?: IdempotencyHold | undefined;
  /** The most sessions that a tenant may keep. */
  readonly most: number;
}

export type SessionRefusal = 'key_taken_over' | 'session_limit';

/** Sessions. The statement that ends a sandbox also ends its session. */
export class SessionRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * Adds an active session. The caller holds its lease. Refused when another request has taken over the idempotency key
   * of this one, and when the tenant has `most` or more sessions that are not erased.
   */
  async insert(
    session: NewSession,
    lease: Omit<SessionLease, 'sessionId'>,
    { hold, most }: SessionInsertRules,
  ): Promise<SessionRow | SessionRefusal> {
    return this.#db.transaction().execute(async (transaction) => {
      const held = await whileHeld(hold).execute(transaction);
      if (held.rows.length === 0) return 'key_taken_over';
      await lockTenant(transaction, session.tenantId);
      if ((await countKept(transaction, session.tenantId)) >= most) return 'session_limit';
      return new SessionRepository(transaction).#insert(session, lease);
    });
  }

  async #insert(session: NewSession, lease: Omit<SessionLease, 'sessionId'>): Promise<SessionRow> {
    return this.#db
      .insertInto('sessions')
      .values({
        session_id: session.sessionId,
        tenant_id: session.tenantId,
        status: 'active',
        vm_id: session.vmId,
        agent: session.agent,
        agent_version: session.agentVersion ?? null,
        app_id: session.appId,
        set_id: session.setId,
        app: session.app === undefined ? null : JSON.stringify(session.app),
        template: session.template,
        size: JSON.stringify(session.size),
        vendor: session.vendor,
        requested_model: session.requestedModel ?? null,
        base_url: session.baseUrl ?? null,
        model: session.model,
        secrets: [...session.secrets],
        user_id: session.userId,
        busy_by: lease.holder,
        busy_until: fromNow(lease.seconds),
        expires_at: fromNow(session.ttlSeconds),
      })
      .returning(SESSION_COLUMNS)
      .executeTakeFirstOrThrow();
  }

  /** The session with this id, regardless of its owner. The id must be a UUID. */
  async find(sessionId: string): Promise<SeenSession | undefined> {
    return this.#db
      .selectFrom('sessions')
      .select([...SESSION_COLUMNS, IS_HELD])
      .where('session_id', '=', sessionId)
      .executeTakeFirst();
  }

  /** A page of a tenant's sessions, newest first, and their total number. */
  async list(
    tenantId: string,
    { limit, offset }: SessionPage,
  ): Promise<{ rows: SeenSession[]; total: number }> {
    const own = this.#db.selectFrom('sessions').where('tenant_id', '=', tenantId);
    const rows = await own
      .select([...SESSION_COLUMNS, IS_HELD])
      .orderBy('created_at', 'desc')
      .orderBy('session_id', 'desc')
      .limit(limit)
      .offset(offset)
      .execute();
    const { total } = await own
      .select((eb) => eb.fn.countAll<string>().as('total'))
      .executeTakeFirstOrThrow();
    return { rows, total: Number(total) };
  }

  /** See {@link claim}. */
  claim(lease: SessionLease): Promise<SessionRow | undefined> {
    return claim(this.#db, lease);
  }

  /** See {@link renew}. */
  renew(lease: SessionLease): Promise<void> {
    return renew(this.#db, lease);
  }

  /** See {@link release}. */
  release(lease: Omit<SessionLease, 'seconds'>): Promise<void> {
    return release(this.#db, lease);
  }

  /** See {@link restart}. */
  restart(...parameters: WithoutDb<typeof restart>): Promise<SessionRow | undefined> {
    return restart(this.#db, ...parameters);
  }

  /** See {@link revert}. */
  revert(...parameters: WithoutDb<typeof revert>): Promise<void> {
    return revert(this.#db, ...parameters);
  }

  /** See {@link close}. */
  close(...parameters: WithoutDb<typeof close>): Promise<SessionRow | undefined> {
    return close(this.#db, ...parameters);
  }

  /** See {@link forget}. */
  forget(sessionId: string): Promise<void> {
    return forget(this.#db, sessionId);
  }

  /** See {@link closeOrphans}. */
  closeOrphans(): Promise<number> {
    return closeOrphans(this.#db);
  }

  /** See {@link requestErasure}. */
  requestErasure(sessionId: string): Promise<void> {
    return requestErasure(this.#db, sessionId);
  }

  /** See {@link eraseEnded}. */
  eraseEnded(sessionId: string): Promise<SessionRow | undefined> {
    return eraseEnded(this.#db, sessionId);
  }

  /** See {@link eraseRequested}. */
  eraseRequested(...parameters: WithoutDb<typeof eraseRequested>): Promise<number> {
    return eraseRequested(this.#db, ...parameters);
  }

  /** See {@link eraseExpired}. */
  eraseExpired(...parameters: WithoutDb<typeof eraseExpired>): Promise<number> {
    return eraseExpired(this.#db, ...parameters);
  }

  /** See {@link findRoute}. */
  route(sessionId: string): Promise<RoutedSession | undefined> {
    return findRoute(this.#db, sessionId);
  }

  /** See {@link findHeld}. */
  heldBy(...parameters: WithoutDb<typeof findHeld>): Promise<HeldSession | undefined> {
    return findHeld(this.#db, ...parameters);
  }

  /** See {@link listUsing}. */
  using(tenantId: string, bundle: string): Promise<string[]> {
    return listUsing(this.#db, tenantId, bundle);
  }

  /** See {@link findModel}. */
  modelIn(vmId: string): Promise<SessionModel | undefined> {
    return findModel(this.#db, vmId);
  }

  /** See {@link noteModel}. */
  noteModel(...parameters: WithoutDb<typeof noteModel>): Promise<void> {
    return noteModel(this.#db, ...parameters);
  }
}

type WithoutDb<F extends (...parameters: never[]) => unknown> =
  Parameters<F> extends [unknown, ...infer Rest] ? Rest : never;
