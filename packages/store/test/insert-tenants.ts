import type { Kysely } from 'kysely';
import type { Schema } from '../src/schema.ts';

/** Adds tenants with these ids. */
export async function insertTenants(db: Kysely<Schema>, ...ids: readonly string[]): Promise<void> {
  await db
    .insertInto('tenants')
    .values(ids.map((id) => ({ tenant_id: id, email: `${id}@b.c` })))
    .execute();
}
