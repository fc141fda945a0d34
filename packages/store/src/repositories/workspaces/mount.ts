import { type Kysely, sql } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
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

/** The id of a workspace, which is made if there is none. Keeps it from being removed as unused. */
export async function openWorkspace(
  db: Kysely<Schema>,
  { tenantId, appId, capsetId }: WorkspaceScope,
): Promise<string> {
  const { rows } = await sql<{ workspace_id: string; is_recent: boolean }>`
    select workspace_id, used_at > ${ago(USED_SECONDS)} as is_recent from workspaces
    where tenant_id = ${tenantId} and app_id = ${appId} and capset_id = ${capsetId}`.execute(db);
  if (rows[0]?.is_recent) return rows[0].workspace_id;
  const { rows: made } = await sql<{ workspace_id: string }>`
    insert into workspaces (tenant_id, app_id, capset_id)
    values (${tenantId}, ${appId}, ${capsetId})
    on conflict (tenant_id, app_id, capset_id) do update set used_at = now()
    returning workspace_id`.execute(db);
  return made[0]?.workspace_id ?? '';
}
