import { type Kysely, sql, type Transaction } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { lockQuota } from './locks.ts';
import type { WorkspaceScope } from './scope.ts';

/** `used_at` is written at most this often. */
const USED_SECONDS = 3_600;

/** The workspace of a sandbox from the perspective of its worker. */
export interface MountedWorkspace extends WorkspaceScope {
  /** That of the sandbox's placement. */
  readonly generation: number;
}

/** The workspace of a sandbox that is on this worker, or ended there at most this long ago. */
export async function findMounted(
  db: Kysely<Schema>,
  workerId: string,
  vmId: string,
  endedSeconds: number,
): Promise<MountedWorkspace | undefined> {
  const { rows } = await sql<MountedWorkspace>`
    select tenant_id as "tenantId", generation, placement->'workspace'->>'app_id' as "appId",
      placement->'workspace'->>'capset_id' as "capsetId"
    from sandboxes
    where vm_id = ${vmId} and worker_id = ${workerId} and placement->'workspace' is not null
      and (state <> 'destroyed' or ended_at > ${ago(endedSeconds)})`.execute(db);
  return rows[0];
}

/**
 * The id of a workspace, which is made if there is none. Keeps it from being removed as unused.
 * @param most workspaces of a tenant
 * @returns undefined if there is none and the tenant has as many
 */
export async function openWorkspace(
  db: Kysely<Schema>,
  scope: WorkspaceScope,
  most: number,
): Promise<string | undefined> {
  const { tenantId, appId, capsetId } = scope;
  const { rows } = await sql<{ workspace_id: string; is_recent: boolean }>`
    select workspace_id, used_at > ${ago(USED_SECONDS)} as is_recent from workspaces
    where tenant_id = ${tenantId} and app_id = ${appId} and capset_id = ${capsetId}`.execute(db);
  if (rows[0]?.is_recent) return rows[0].workspace_id;
  return db.transaction().execute(async (transaction) => {
    await lockQuota(transaction, tenantId);
    return makeWorkspace(transaction, scope, most);
  });
}

/** Like {@link openWorkspace}, in a transaction that has locked the quota of workspaces. */
export async function makeWorkspace(
  transaction: Transaction<Schema>,
  { tenantId, appId, capsetId }: WorkspaceScope,
  most: number,
): Promise<string | undefined> {
  const { rows } = await sql<{ workspace_id: string }>`
    with known as (
      update workspaces set used_at = now()
      where tenant_id = ${tenantId} and app_id = ${appId} and capset_id = ${capsetId}
      returning workspace_id),
    made as (
      insert into workspaces (tenant_id, app_id, capset_id)
      select ${tenantId}, ${appId}, ${capsetId}
      where not exists (select from known)
        and (select count(*) from workspaces where tenant_id = ${tenantId}) < ${most}
      -- The version before has another lock.
      on conflict (tenant_id, app_id, capset_id) do update set used_at = now()
      returning workspace_id)
    select workspace_id from known union all select workspace_id from made`.execute(transaction);
  return rows[0]?.workspace_id;
}
