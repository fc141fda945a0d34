import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/**
 * Lets the objects of a tenant's replaced files, which are kept for a while, have no more than so many bytes together: those
 * that were replaced first are to be deleted at once.
 */
export async function limitReplaced(
  db: Kysely<Schema>,
  tenantId: string,
  mostBytes: number,
): Promise<void> {
  await sql`
    update object_deletions as deletion set due_at = now()
    from (
      select object_key, sum(size_bytes) over (order by due_at desc, object_key) as bytes
      from object_deletions where tenant_id = ${tenantId} and due_at > now()) as kept
    where deletion.object_key = kept.object_key and kept.bytes > ${mostBytes}
      -- The due time of a claimed one is the end of its claim.
      and not deletion.claimed`.execute(db);
}
