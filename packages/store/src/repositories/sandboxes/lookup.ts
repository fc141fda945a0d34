import { LIMITS, type WorkerSandbox } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { SandboxRow, Schema, WorkerRow } from '../../schema.ts';
import { changes } from './reports.ts';

/** Identifies a sandbox of a tenant. */
export interface OwnedId {
  readonly tenantId: string;
  readonly vmId: string;
}

/** A sandbox, and when its worker last sent a report. */
export type SeenSandbox = SandboxRow & { readonly last_seen_at: Date };

/** Condition: the sandbox is live, or ended recently enough that its owner can still see it. */
export const VISIBLE = sql`(state <> 'destroyed'
  or ended_at > now() - make_interval(secs => ${LIMITS.destroyedRecordSeconds}))`;

/**
 * Finds many sandboxes at once. Owner and id are one condition of one statement, so the id of another tenant's sandbox
 * cannot be distinguished from one that does not exist.
 */
export async function findOwned(
  db: Kysely<Schema>,
  ids: readonly OwnedId[],
): Promise<(SeenSandbox | undefined)[]> {
  const { rows } = await sql<SeenSandbox>`
    select sandboxes.*, workers.heartbeat_at as last_seen_at
    from sandboxes join workers using (worker_id)
    join unnest(${ids.map((id) => id.vmId)}::text[], ${ids.map((id) => id.tenantId)}::text[])
      as wanted(vm_id, tenant_id) using (vm_id, tenant_id)
    where ${VISIBLE}`.execute(db);
  const byId = new Map(rows.map((row) => [`${row.tenant_id} ${row.vm_id}`, row]));
  return ids.map((id) => byId.get(`${id.tenantId} ${id.vmId}`));
}

/** A sandbox with an agent outside sessions, and the address of its worker. */
export type RoutedSandbox = SandboxRow & {
  readonly [Field in 'url' | 'certificate']: WorkerRow[Field] | null;
};

/** Finds the sandbox of an agent outside sessions, live or ended. */
export async function findAgentRoute(
  db: Kysely<Schema>,
  vmId: string,
): Promise<RoutedSandbox | undefined> {
  const { rows } = await sql<RoutedSandbox>`
    select sandboxes.*, workers.url, workers.certificate
    from sandboxes left join workers
      on workers.worker_id = sandboxes.worker_id and workers.removed_at is null
    where vm_id = ${vmId} and agent is not null and session_id is null`.execute(db);
  return rows[0];
}

/** A page in the order of the ids: at most `limit` sandboxes whose id follows `after`. */
export interface SandboxPage {
  readonly limit: number;
  readonly after?: string | undefined;
}

/**
 * The live sandboxes of a tenant and the last of those that its owner can still see, oldest first; or a page of all that its
 * owner can see.
 */
export async function listOwned(
  db: Kysely<Schema>,
  tenantId: string,
  page?: SandboxPage,
): Promise<SeenSandbox[]> {
  const { rows } = await listStatement(tenantId, page).execute(db);
  return rows;
}

/** The statement of {@link listOwned}. It reads no old records, however many there are. */
export function listStatement(tenantId: string, page?: SandboxPage): RawBuilder<SeenSandbox> {
  const isWanted =
    page === undefined
      ? sql`order by created_at, vm_id`
      : sql`where vm_id > ${page.after ?? ''} order by vm_id limit ${page.limit}`;
  const last =
    page === undefined ? sql`order by ended_at desc limit ${LIMITS.destroyedRecordsListed}` : sql``;
  return sql<SeenSandbox>`
    select listed.*, workers.heartbeat_at as last_seen_at from (
      (select * from sandboxes where tenant_id = ${tenantId} and state <> 'destroyed')
      union all
      (select * from sandboxes
        where tenant_id = ${tenantId} and state = 'destroyed' and ${VISIBLE} ${last})
    ) as listed join workers using (worker_id)
    ${isWanted}`;
}

/** The data that the reconciler compares with a worker's report. */
export type LedgerEntry = Pick<
  SandboxRow,
  'vm_id' | 'worker_id' | 'generation' | 'state' | 'delete_requested_at'
> & {
  /** Milliseconds since the sandbox was placed on its worker, by the database's clock. */
  readonly age_ms: number;
  /** Placed before its worker last registered. A creation in progress then ended with the old process. */
  readonly placed_before_registration: boolean;
};

/** All sandboxes that are live on this worker. */
export function entriesOf(db: Kysely<Schema>, workerId: string): Promise<LedgerEntry[]> {
  return entries(db, sql`select 1`, isLiveOn(workerId));
}

/**
 * Applies the reports of a worker, and in the same statement finds the entries of the reported sandboxes, on any worker, live
 * or ended, without these changes. If the report `isComplete`, also those of all that are live on this worker.
 */
export function compareReports(
  db: Kysely<Schema>,
  workerId: string,
  reports: readonly WorkerSandbox[],
  isComplete: boolean,
): Promise<LedgerEntry[]> {
  const isReported = sql`vm_id = any(${reports.map(({ vm_id }) => vm_id)}::text[])`;
  const isWanted = isComplete ? sql`${isLiveOn(workerId)} or ${isReported}` : isReported;
  return entries(db, reports.length === 0 ? sql`select 1` : changes(workerId, reports), isWanted);
}

function isLiveOn(workerId: string): RawBuilder<unknown> {
  return sql`(worker_id = ${workerId} and state <> 'destroyed')`;
}

async function entries(
  db: Kysely<Schema>,
  applied: RawBuilder<unknown>,
  isWanted: RawBuilder<unknown>,
): Promise<LedgerEntry[]> {
  const { rows } = await sql<LedgerEntry>`
    with applied as (${applied})
    select vm_id, worker_id, generation, state, delete_requested_at,
      extract(epoch from now() - placed_at)::float8 * 1000 as age_ms,
      placed_at < registered_at as placed_before_registration
    from sandboxes join workers using (worker_id)
    where ${isWanted}`.execute(db);
  return rows;
}
