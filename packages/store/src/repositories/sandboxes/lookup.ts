import { LIMITS } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';

/** Names a sandbox as one tenant sees it. */
export interface OwnedId {
  readonly tenantId: string;
  readonly vmId: string;
}

/** Records stay visible to their owner for this long after their end. */
const VISIBLE = sql`(state <> 'destroyed'
  or ended_at > now() - make_interval(secs => ${LIMITS.destroyedRecordSeconds}))`;

/**
 * Finds many at once. Owner and id are one condition of one statement: an id of another tenant is
 * looked up, and missed, exactly as one that does not exist.
 */
export async function findOwned(
  db: Kysely<Schema>,
  ids: readonly OwnedId[],
): Promise<(SandboxRow | undefined)[]> {
  const { rows } = await sql<SandboxRow>`
    select sandboxes.* from sandboxes
    join unnest(${ids.map((id) => id.vmId)}::text[], ${ids.map((id) => id.tenantId)}::text[])
      as wanted(vm_id, tenant_id) using (vm_id, tenant_id)
    where ${VISIBLE}`.execute(db);
  const byId = new Map(rows.map((row) => [`${row.tenant_id} ${row.vm_id}`, row]));
  return ids.map((id) => byId.get(`${id.tenantId} ${id.vmId}`));
}

/** A tenant's records, oldest first. */
export async function listOwned(db: Kysely<Schema>, tenantId: string): Promise<SandboxRow[]> {
  return db
    .selectFrom('sandboxes')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where(sql<boolean>`${VISIBLE}`)
    .orderBy('created_at')
    .orderBy('vm_id')
    .execute();
}

/** What the reconciler compares a worker's report with. */
export type LedgerEntry = Pick<
  SandboxRow,
  'vm_id' | 'worker_id' | 'generation' | 'state' | 'delete_requested_at'
> & {
  /** Milliseconds since it was placed on its worker, by the database's clock. */
  readonly age_ms: number;
  /** Placed before its worker registered last: a creation then under way has ended with that process. */
  readonly placed_before_registration: boolean;
};

/** Every entry that is active on this worker, and any of `vmIds` wherever it is and was. */
export async function entriesFor(
  db: Kysely<Schema>,
  workerId: string,
  vmIds: readonly string[],
): Promise<LedgerEntry[]> {
  const { rows } = await sql<LedgerEntry>`
    select vm_id, worker_id, generation, state, delete_requested_at,
      extract(epoch from now() - placed_at)::float8 * 1000 as age_ms,
      placed_at < registered_at as placed_before_registration
    from sandboxes join workers using (worker_id)
    where (worker_id = ${workerId} and state <> 'destroyed') or vm_id = any(${[...vmIds]}::text[])`.execute(
    db,
  );
  return rows;
}
