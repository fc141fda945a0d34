import type { SessionStatus } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema, SessionRow } from '../../schema.ts';
import { fromNow, SESSION_COLUMNS } from './columns.ts';

const HAS_NO_SANDBOX = sql<boolean>`not exists (select from sandboxes
  where sandboxes.vm_id = sessions.vm_id and sandboxes.state <> 'destroyed')`;

/** Identifies one start of a session. */
export type SessionStart = Pick<SessionRow, 'session_id' | 'generation'>;

/**
 * Makes an ended session active again, or one whose sandbox has ended, with the next generation and another sandbox.
 * Undefined when its sandbox is live, when it is erased, or when another request has restarted it.
 */
export async function restart(
  db: Kysely<Schema>,
  { session_id: sessionId, generation }: SessionStart,
  start: { vmId: string; ttlSeconds: number; model: string },
): Promise<SessionRow | undefined> {
  return db
    .updateTable('sessions')
    .set((eb) => ({
      status: 'active',
      generation: eb('generation', '+', 1),
      vm_id: start.vmId,
      model: start.model,
      expires_at: fromNow(start.ttlSeconds),
      ended_at: null,
    }))
    .where('session_id', '=', sessionId)
    .where('generation', '=', generation)
    .where((eb) => eb.or([eb('status', '<>', 'active'), HAS_NO_SANDBOX]))
    .where('erase_requested_at', 'is', null)
    .returning(SESSION_COLUMNS)
    .executeTakeFirst();
}

/** Records the model that a session uses from now on. */
export async function noteModel(
  db: Kysely<Schema>,
  { session_id: sessionId, generation }: SessionStart,
  model: string,
): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ model })
    .where('session_id', '=', sessionId)
    .where('generation', '=', generation)
    .execute();
}

/** Undoes a {@link restart} whose sandbox could not be created. */
export async function revert(
  db: Kysely<Schema>,
  { session_id: sessionId, generation }: SessionStart,
  before: Pick<SessionRow, 'status' | 'vm_id' | 'model' | 'ended_at' | 'expires_at'>,
): Promise<void> {
  const { status, vm_id, model, ended_at, expires_at } = before;
  await db
    .updateTable('sessions')
    .set({ status, vm_id, model, ended_at, expires_at })
    .where('session_id', '=', sessionId)
    .where('generation', '=', generation)
    .where('status', '=', 'active')
    .execute();
}

/** Ends an active session that has no sandbox. */
export async function close(
  db: Kysely<Schema>,
  { session_id: sessionId, generation }: SessionStart,
  status: Exclude<SessionStatus, 'active'>,
): Promise<SessionRow | undefined> {
  return db
    .updateTable('sessions')
    .set({ status, ended_at: sql<Date>`now()` })
    .where('session_id', '=', sessionId)
    .where('generation', '=', generation)
    .where('status', '=', 'active')
    .returning(SESSION_COLUMNS)
    .executeTakeFirst();
}

/** Removes a session whose first start failed and which no client has seen, unless its sandbox is live after all. */
export async function forget(db: Kysely<Schema>, sessionId: string): Promise<void> {
  await sql`
    delete from sessions where session_id = ${sessionId} and generation = 1
      and ${HAS_NO_SANDBOX}`.execute(db);
}

/** Ends active sessions whose start was interrupted by a crash: they have no lease and no live sandbox. */
export async function closeOrphans(db: Kysely<Schema>): Promise<number> {
  const { numAffectedRows } = await sql`
    update sessions set status = 'failed', ended_at = now()
    where status = 'active' and (busy_until is null or busy_until < now())
      and ${HAS_NO_SANDBOX}`.execute(db);
  return Number(numAffectedRows ?? 0);
}
