import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Makes the tenant's other changes of its quota wait until the transaction ends. */
export async function lockTenant(db: Kysely<Schema>, tenantId: string): Promise<void> {
  await sql`select from tenants where tenant_id = ${tenantId} for no key update`.execute(db);
}

/**
 * Makes other changes of the workspace wait until the transaction ends. Whoever also locks the tenant does so before.
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
