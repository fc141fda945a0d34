import type { Agent, AppJson, LlmVendor, SessionStatus } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';
import { ROW, until } from './columns.ts';
import { claim, release, renew, type SessionLease } from './lease.ts';
import {
  findHeld,
  findRoute,
  type HeldSession,
  listUsing,
  type RoutedSession,
  type SessionPage,
  type SessionUse,
} from './lookup.ts';

export type { SessionLease } from './lease.ts';
export type { HeldSession, RoutedSession, SessionPage, SessionUse } from './lookup.ts';

/** A session that is about to be started for the first time. */
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
  readonly vendor: LlmVendor;
  readonly requestedModel: string | undefined;
  readonly baseUrl: string | undefined;
  readonly model: string;
  readonly secrets: readonly string[];
  readonly userId: string;
  readonly ttlSeconds: number;
}

/** Sessions. A session ends in the statement that ends its sandbox. */
export class SessionRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Adds a session, active and held by whoever starts it. */
  async insert(session: NewSession, lease: Omit<SessionLease, 'sessionId'>): Promise<SessionRow> {
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
        vendor: session.vendor,
        requested_model: session.requestedModel ?? null,
        base_url: session.baseUrl ?? null,
        model: session.model,
        secrets: [...session.secrets],
        user_id: session.userId,
        busy_by: lease.holder,
        busy_until: until(lease.seconds),
        expires_at: until(session.ttlSeconds),
      })
      .returning(ROW)
      .executeTakeFirstOrThrow();
  }

  /** The session of this id, whoever owns it. The id must be a UUID. */
  async find(sessionId: string): Promise<SessionRow | undefined> {
    return this.#db
      .selectFrom('sessions')
      .select(ROW)
      .where('session_id', '=', sessionId)
      .executeTakeFirst();
  }

  /** A tenant's sessions, newest first, and how many there are in all. */
  async list(
    tenantId: string,
    { limit, offset }: SessionPage,
  ): Promise<{ rows: SessionRow[]; total: number }> {
    const own = this.#db.selectFrom('sessions').where('tenant_id', '=', tenantId);
    const rows = await own
      .select(ROW)
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

  /**
   * Makes an ended session active again, under the next generation and with another sandbox. Undefined when
   * it has been started meanwhile, or was never ended.
   */
  async restart(
    { session_id: sessionId, generation }: Pick<SessionRow, 'session_id' | 'generation'>,
    start: { vmId: string; ttlSeconds: number; model: string },
  ): Promise<SessionRow | undefined> {
    return this.#db
      .updateTable('sessions')
      .set((eb) => ({
        status: 'active',
        generation: eb('generation', '+', 1),
        vm_id: start.vmId,
        model: start.model,
        expires_at: until(start.ttlSeconds),
        ended_at: null,
      }))
      .where('session_id', '=', sessionId)
      .where('generation', '=', generation)
      .where('status', '<>', 'active')
      .returning(ROW)
      .executeTakeFirst();
  }

  /** Undoes a {@link restart} that no sandbox came of: the session is as ended as it was before. */
  async revert(
    { session_id: sessionId, generation }: Pick<SessionRow, 'session_id' | 'generation'>,
    before: Pick<SessionRow, 'status' | 'vm_id' | 'model' | 'ended_at' | 'expires_at'>,
  ): Promise<void> {
    const { status, vm_id, model, ended_at, expires_at } = before;
    await this.#db
      .updateTable('sessions')
      .set({ status, vm_id, model, ended_at, expires_at })
      .where('session_id', '=', sessionId)
      .where('generation', '=', generation)
      .where('status', '=', 'active')
      .execute();
  }

  /** Ends an active session that has no sandbox which could end it. */
  async close(
    { session_id: sessionId, generation }: Pick<SessionRow, 'session_id' | 'generation'>,
    status: Exclude<SessionStatus, 'active'>,
  ): Promise<SessionRow | undefined> {
    return this.#db
      .updateTable('sessions')
      .set({ status, ended_at: sql<Date>`now()` })
      .where('session_id', '=', sessionId)
      .where('generation', '=', generation)
      .where('status', '=', 'active')
      .returning(ROW)
      .executeTakeFirst();
  }

  /** Removes a session whose first start failed, and of which nobody was told. */
  async forget(sessionId: string): Promise<void> {
    await this.#db
      .deleteFrom('sessions')
      .where('session_id', '=', sessionId)
      .where('generation', '=', 1)
      .execute();
  }

  /** Ends active sessions whose start was cut short by a crash: nobody holds them, and no sandbox of theirs lives. */
  async closeOrphans(): Promise<number> {
    const { numAffectedRows } = await sql`
      update sessions set status = 'failed', ended_at = now()
      where status = 'active' and (busy_until is null or busy_until < now())
        and not exists (select from sandboxes
          where sandboxes.vm_id = sessions.vm_id and sandboxes.state <> 'destroyed')`.execute(
      this.#db,
    );
    return Number(numAffectedRows ?? 0);
  }

  /** See {@link findRoute}. */
  route(sessionId: string): Promise<RoutedSession | undefined> {
    return findRoute(this.#db, sessionId);
  }

  /** See {@link findHeld}. */
  heldBy(...parameters: HeldParameters): Promise<HeldSession | undefined> {
    return findHeld(this.#db, ...parameters);
  }

  /** See {@link listUsing}. */
  using(tenantId: string, bundle: string): Promise<SessionUse[]> {
    return listUsing(this.#db, tenantId, bundle);
  }
}

type HeldParameters = Parameters<typeof findHeld> extends [unknown, ...infer Rest] ? Rest : never;
