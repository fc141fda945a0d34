import type { WorkerSandbox } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { ago } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';

/** A sandbox is kept in quarantine for this long, unless an operator decides before. */
export const QUARANTINE_SECONDS = 3 * 24 * 3600;

/** What happens to a sandbox that the ledger does not know. */
export interface Judgement {
  readonly vm_id: string;
  readonly generation: number;
  /**
   * `forgotten`: the ledger itself removed its row, because it had not started. `held`: the ledger must have lost it, so it
   * is in quarantine. `over`: its quarantine is over.
   */
  readonly verdict: 'forgotten' | 'held' | 'over';
  /** Whether it has just come into quarantine. */
  readonly is_new: boolean;
}

/**
 * Judges the live sandboxes of a worker that the ledger does not know, and keeps those in quarantine that it must have
 * known. Sandboxes of this worker that are not among them leave the quarantine.
 */
export async function judge(
  db: Kysely<Schema>,
  workerId: string,
  unknown: readonly WorkerSandbox[],
): Promise<Judgement[]> {
  const { rows } = await sql<Judgement>`
    with reported as (
      select * from unnest(${unknown.map((one) => one.vm_id)}::text[],
        ${unknown.map((one) => one.generation)}::int[],
        ${unknown.map((one) => one.tenant_id)}::text[],
        ${unknown.map((one) => JSON.stringify(one))}::text[])
        as reported(vm_id, generation, tenant_id, report)
    ), forgotten as (
      select reported.vm_id, reported.generation from reported join forgotten_sandboxes using (vm_id)
      where forgotten_sandboxes.generation >= reported.generation
    ), gone as (
      delete from quarantined_sandboxes
      where worker_id = ${workerId} and vm_id <> all (select vm_id from reported)
    ), held as (
      insert into quarantined_sandboxes as known (vm_id, worker_id, generation, tenant_id, report)
      select vm_id, ${workerId}, generation, tenant_id, report::json from reported
      where vm_id not in (select vm_id from forgotten)
      on conflict (vm_id, worker_id) do update set generation = excluded.generation,
        tenant_id = excluded.tenant_id, report = excluded.report, seen_at = now()
      returning vm_id, generation, xmax = 0 as is_new,
        end_requested or quarantined_at < ${ago(QUARANTINE_SECONDS)} as is_over
    )
    select vm_id, generation, 'forgotten' as verdict, false as is_new from forgotten
    union all
    select vm_id, generation, case when is_over then 'over' else 'held' end, is_new from held`.execute(
    db,
  );
  return rows;
}
