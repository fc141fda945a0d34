import { type Kysely, sql } from 'kysely';
import { lockName } from '../../advisory-lock.ts';
import type { Schema } from '../../schema.ts';

/** Makes other changes of what the tenant's quota of workspaces counts wait until the transaction ends. */
export async function lockQuota(db: Kysely<Schema>, tenantId: string): Promise<void> {
  // A flush holds this for seconds. So it is no lock on the tenant's row, which the ends of its sandboxes need, with all others
  // in the same report. The version before does lock that row: while both run, a tenant may get a little more than its quota.
  await lockName(db, `workspace quota ${tenantId}`);
}

/**
 * Makes other changes of the workspace wait until the transaction ends. Whoever also locks the quota does so before.
 * Returns the version of its last change; undefined if there is no such workspace.
 */
export async function lockWorkspace(
  db: Kysely<Schema>,
  workspaceId: string,
): Promise<number | undefined> {
  const { rows } = await sql<{ version: string }>`
    select version from workspaces where workspace_id = ${workspaceId} for no key update`.execute(
    db,
  );
  return rows[0] && Number(rows[0].version);
}
