import type { LlmVendor } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';

/** A page of a list. */
export interface SessionPage {
  readonly limit: number;
  readonly offset: number;
}

/** A session and the worker that its sandbox runs on, if it runs. */
export type RoutedSession = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'app_id' | 'set_id' | 'template' | 'status' | 'expires_at'
> & {
  readonly vm_id: string | null;
  readonly worker_id: string | null;
  readonly url: string | null;
  readonly certificate: string | null;
};

/** Whose a session is and where it can be reached. */
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
    left join workers on workers.worker_id = sandboxes.worker_id
    where sessions.session_id = ${sessionId}`.execute(db);
  return rows[0];
}

/** A session as the worker sees it that holds a sandbox of it. */
export type HeldSession = Pick<SessionRow, 'session_id' | 'generation' | 'files_id'> & {
  /** Which start of the session the sandbox belongs to; older than `generation` when it was started anew. */
  readonly held_generation: number;
};

/** Which sandbox of a session is meant. */
export type HeldSandbox =
  /** The one of this start of the session, whether it still lives or not. */
  | { readonly generation: number; readonly vmId?: string }
  /** The present one, while it lives. */
  | 'current';

/** The session if a sandbox of it is, or was, on this worker. */
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
    select sessions.session_id, sessions.generation, files_id, session_generation as held_generation
    from sessions join sandboxes using (session_id)
    where sessions.session_id = ${sessionId} and worker_id = ${workerId} and ${which}
    limit 1`.execute(db);
  return rows[0];
}

/** An active session that uses a bundle, and where it runs. */
export interface SessionUse {
  readonly session_id: string;
  readonly tenant_id: string;
  readonly vm_id: string;
  readonly worker_id: string;
  readonly vendor: LlmVendor;
}

/** Every active session of a tenant that uses this bundle and has a sandbox. */
export async function listUsing(
  db: Kysely<Schema>,
  tenantId: string,
  bundle: string,
): Promise<SessionUse[]> {
  const { rows } = await sql<SessionUse>`
    select sessions.session_id, sessions.tenant_id, vm_id, worker_id, vendor
    from sessions join sandboxes using (vm_id)
    where sessions.tenant_id = ${tenantId} and status = 'active' and ${bundle} = any(secrets)
      and sandboxes.state <> 'destroyed'`.execute(db);
  return rows;
}
