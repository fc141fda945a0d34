import type { Insertable, Kysely } from 'kysely';
import type { Schema } from '../src/schema.ts';

/** Memory of a sandbox that {@link insertSandbox} adds. */
export const MEMORY_MIB = 512;

type Columns = Insertable<Schema['sandboxes']>;

/** Adds a running sandbox as a placement does: its tenant and its worker, which exist, count it. */
export async function insertSandbox(
  db: Kysely<Schema>,
  columns: Pick<Columns, 'vm_id' | 'tenant_id' | 'worker_id'> & Partial<Columns>,
): Promise<void> {
  await db
    .insertInto('sandboxes')
    .values({
      state: 'running',
      template: 'standard',
      memory_mib: MEMORY_MIB,
      idle_timeout_seconds: 60,
      max_lifetime_seconds: 60,
      active_connections: 3,
      metadata: '{}',
      placement: null,
      ...columns,
    })
    .execute();
  await db
    .updateTable('tenants')
    .set((eb) => ({ active_sandboxes: eb('active_sandboxes', '+', 1) }))
    .where('tenant_id', '=', columns.tenant_id)
    .execute();
  await db
    .updateTable('workers')
    .set((eb) => ({ reserved_memory_mib: eb('reserved_memory_mib', '+', MEMORY_MIB) }))
    .where('worker_id', '=', columns.worker_id)
    .execute();
}

/** Removes all sandboxes and sessions. Tenants and workers, which stay, count none. */
export async function removeSandboxes(db: Kysely<Schema>): Promise<void> {
  await db.deleteFrom('sandboxes').execute();
  await db.deleteFrom('sessions').execute();
  await db.updateTable('tenants').set({ active_sandboxes: 0 }).execute();
  await db.updateTable('workers').set({ reserved_memory_mib: 0 }).execute();
}
