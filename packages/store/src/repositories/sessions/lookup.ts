import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';

/** A page of a list. */
export interface SessionPage {
  readonly limit: number;
  readonly offset: number;
}

/** A session, and whether a request starts or stops it now, by the database's clock. */
export type SeenSession = SessionRow & { readonly is_held: boolean };

/** See {@link SeenSession}. Not to be returned by a statement that changes the lease. */
export const IS_HELD = sql<boolean>`coalesce(busy_until >= now(), false)`.as('is_held');

/** The number of a tenant's sessions that are not erased. */
export async function countKept(db: Kysely<Schema>, tenantId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from sessions
    where tenant_id = ${tenantId} and erased_at is null`.execute(db);
  return rows[0]?.count ?? 0;
}

/** A session, and the worker of its running sandbox, if there is one. */
export type RoutedSession = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'app_id' | 'set_id' | 'template' | 'status' | 'expires_at'
> & {
  readonly vm_id: string | null;
  readonly worker_id: string | null;
  readonly url: string | null;
  readonly certificate: string | null;
};

/** The owner of a session and the address of its worker. */
export async function findRoute(
  db: Kysely<Schema>,
  sessionId: string,
): Promise<RoutedSession | undefined> {
  const { rows } = await sql<RoutedSession>`
    select sessions.session_id, sessions.tenant_id, app_id, set_id, sessions.template, status, expires_at,
      sandboxes.vm_id, workers.worker_id, workers.url, workers.certificate
    from sessions
    left join sandboxes on sandboxes.vm_id = sessions.vm_id
      and sandboxes.state in ('running', 'paused') and sandboxes.delete_requested_at is null
    left join workers on workers.worker_id = sandboxes.worker_id and workers.removed_at is null
    where sessions.session_id = ${sessionId}`.execute(db);
  return rows[0];
}

/** A session from the perspective of a worker that has a sandbox of it. */
export type HeldSession = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'generation' | 'files_id' | 'erased_at'
> & {
  /** The generation of the sandbox. Lower than `generation` when the session has been restarted since. */
  readonly held_generation: number;
};

/** Selects a sandbox of a session. */
export type HeldSandbox =
  /** The sandbox of this generation, live or ended. */
  | { readonly generation: number; readonly vmId?: string }
  /** The current sandbox, while it is live. */
  | 'current';

/** The session, if the selected sandbox is or was on this worker. */
export async function findHeld(
  db: Kysely<Schema>,
  workerId: string,
  sessionId: string,
  sandbox: HeldSandbox,
): Promise<HeldSession | undefined> {
  const which =
    sandbox === 'current'
      ? sql`sandboxes.vm_id = sessions.vm_id and sandboxes.state <> 'destroyed'`
      : sql`session_generation = ${sandbox.generation}
          and sandboxes.vm_id = coalesce(${sandbox.vmId ?? null}, sandboxes.vm_id)`;
  const { rows } = await sql<HeldSession>`
    select sessions.session_id, sessions.tenant_id, sessions.generation, files_id, erased_at,
      session_generation as held_generation
    from sessions join sandboxes using (session_id)
    where sessions.session_id = ${sessionId} and worker_id = ${workerId} and ${which}
    limit 1`.execute(db);
  return rows[0];
}

/** The sandboxes of a tenant's active sessions that use this bundle. */
export async function listUsing(
  db: Kysely<Schema>,
  tenantId: string,
  bundle: string,
): Promise<string[]> {
  const { rows } = await sql<{ vm_id: string }>`
    select vm_id from sessions join sandboxes using (vm_id)
    where sessions.tenant_id = ${tenantId} and status = 'active' and ${bundle} = any(secrets)
      and sandboxes.state <> 'destroyed'`.execute(db);
  return rows.map((row) => row.vm_id);
}

/** What decides on the model of a session. */
export type SessionModel = Pick<
  SessionRow,
  'session_id' | 'generation' | 'agent' | 'vendor' | 'requested_model' | 'model'
>;

/** The model of the session whose current sandbox this is. */
export async function findModel(
  db: Kysely<Schema>,
  vmId: string,
): Promise<SessionModel | undefined> {
  const { rows } = await sql<SessionModel>`
    select sessions.session_id, sessions.generation, sessions.agent, vendor, requested_model, model
    from sandboxes join sessions using (session_id, vm_id) where vm_id = ${vmId}`.execute(db);
  return rows[0];
}
