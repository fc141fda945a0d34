import type { EndReason } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';

/** The end of one sandbox. */
export interface Ending {
  readonly vmId: string;
  /** Only this generation ends; any, when left out. */
  readonly generation?: number;
  readonly reason: EndReason;
  /** When its worker says it ended; now, when left out. */
  readonly endedAt?: string;
  readonly cpuSeconds?: number;
}

/**
 * Ends a sandbox in the ledger and gives its capacity back, in one statement; exactly one caller
 * gets the row, however many race to end it.
 */
export async function end(db: Kysely<Schema>, ending: Ending): Promise<SandboxRow | undefined> {
  return release(
    db,
    sql`
      update sandboxes set state = 'destroyed', end_reason = ${ending.reason},
        ended_at = coalesce(${ending.endedAt ?? null}::timestamptz, now()), active_connections = 0,
        cpu_seconds = greatest(cpu_seconds, coalesce(${ending.cpuSeconds ?? null}::float8, 0))
      where vm_id = ${ending.vmId} and state <> 'destroyed'
        and generation = coalesce(${ending.generation ?? null}::int, generation)
      returning *`,
  );
}

/** Removes the row of a sandbox that no worker ever started and that nobody has asked to delete. */
export async function forget(
  db: Kysely<Schema>,
  vmId: string,
  generation: number,
): Promise<SandboxRow | undefined> {
  return release(
    db,
    sql`
      delete from sandboxes where vm_id = ${vmId} and generation = ${generation}
        and state in ('creating', 'configuring', 'booting') and delete_requested_at is null
      returning *`,
  );
}

/** Runs the statement that takes one sandbox out of the active ones; locks tenant, then worker. */
async function release(
  db: Kysely<Schema>,
  statement: RawBuilder<unknown>,
): Promise<SandboxRow | undefined> {
  const { rows } = await sql<SandboxRow>`
    with gone as (${statement}),
    counted as (
      update tenants set active_sandboxes = active_sandboxes - 1
      from gone where tenants.tenant_id = gone.tenant_id
      returning tenants.tenant_id
    ), freed as (
      update workers set reserved_memory_mib = workers.reserved_memory_mib - gone.memory_mib
      from gone where workers.worker_id = gone.worker_id and exists (select from counted)
    )
    select * from gone`.execute(db);
  return rows[0];
}
