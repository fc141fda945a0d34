import { USAGE_COUNTERS } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';

/** The columns that are added up. */
const SUMMED = [...USAGE_COUNTERS, 'cost_microusd'].map((name) => sql.ref(name));

/** Of the meter `m`: whether all its records are posted. */
const isPosted = sql`not exists (select from usage_records r where r.vm_id = m.vm_id
  and r.generation = m.generation and r.posted_entry is null)`;

/**
 * Replaces the posted records of sandboxes that ended some time ago by one for each UTC day, with the same sums: a sandbox has a
 * record every ten seconds. Handles up to `limit` sandboxes and returns their number. Several control planes may do so at once.
 */
export async function foldRecords(
  db: Kysely<Schema>,
  endedSecondsAgo: number,
  limit: number,
  signal: AbortSignal,
): Promise<number> {
  const { rows } = await sql<Meter>`
    select m.vm_id, m.generation from usage_meters m join sandboxes using (vm_id)
    where not m.is_folded and sandboxes.ended_at < ${ago(endedSecondsAgo)} and ${isPosted}
    limit ${limit}`.execute(db);
  let folded = 0;
  for (const meter of rows) {
    if (signal.aborted) break;
    if (await foldMeter(db, meter)) folded += 1;
  }
  return folded;
}

interface Meter {
  readonly vm_id: string;
  readonly generation: number;
}

/** False when another control plane has done it, or a late record has arrived meanwhile. */
async function foldMeter(db: Kysely<Schema>, { vm_id, generation }: Meter): Promise<boolean> {
  const { rows } = await sql`
    with chosen as (
      select m.vm_id, m.generation from usage_meters m
      where m.vm_id = ${vm_id} and m.generation = ${generation} and not m.is_folded and ${isPosted}
      for no key update skip locked
    ), removed as (
      delete from usage_records r using chosen
      where r.vm_id = chosen.vm_id and r.generation = chosen.generation
      returning r.*
    ), added as (
      insert into usage_records (vm_id, generation, tenant_id, seq, used_at, posted_entry, created_at,
        ${sql.join(SUMMED)})
      select vm_id, generation, tenant_id, max(seq), max(used_at), max(posted_entry), max(created_at),
        ${sql.join(SUMMED.map((name) => sql`sum(${name})`))}
      from removed group by vm_id, generation, tenant_id, (used_at at time zone 'UTC')::date
    )
    update usage_meters m set is_folded = true from chosen
    where m.vm_id = chosen.vm_id and m.generation = chosen.generation
    returning m.vm_id`.execute(db);
  return rows.length > 0;
}
