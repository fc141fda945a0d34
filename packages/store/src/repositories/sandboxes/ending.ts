import type { EndReason, SessionStatus } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';

/** The end of one sandbox. */
export interface Ending {
  readonly vmId: string;
  /** Ends only this generation. Default: any. */
  readonly generation?: number;
  /** Only a sandbox of this worker ends; of any, when left out. */
  readonly workerId?: string;
  /** Ends only a sandbox that has not started yet. Default: any. */
  readonly unstarted?: boolean;
  readonly reason: EndReason;
  /** The time reported by the worker. Default: now. */
  readonly endedAt?: string;
  readonly cpuSeconds?: number;
  readonly agentExitCode?: number | undefined;
  /** Leaves the session of the sandbox active, for a caller that starts it again. */
  readonly keepsSession?: boolean;
}

const IS_STARTING = sql`(state in ('creating', 'configuring', 'booting'))`;

/** The status of a session after its sandbox has ended. */
const SESSION_AFTER: Readonly<Record<EndReason, Exclude<SessionStatus, 'active'>>> = {
  deleted: 'completed',
  idle_timeout: 'completed',
  drained: 'completed',
  agent_exited: 'completed',
  credits_exhausted: 'completed',
  max_lifetime: 'expired',
  worker_lost: 'failed',
  boot_failed: 'failed',
  disk_pressure: 'failed',
};

/**
 * Ends a sandbox in the ledger in one statement: also ends its session, removes the secrets of its agent and releases
 * its capacity. An agent without an exit code has failed. Exactly one of several concurrent callers gets the row.
 */
export async function end(db: Kysely<Schema>, ending: Ending): Promise<SandboxRow | undefined> {
  const exitCode = ending.agentExitCode ?? null;
  return release(
    db,
    sql`
      update sandboxes set state = 'destroyed', end_reason = ${ending.reason},
        ended_at = coalesce(${ending.endedAt ?? null}::timestamptz, now()), active_connections = 0,
        cpu_seconds = greatest(cpu_seconds, coalesce(${ending.cpuSeconds ?? null}::float8, 0)),
        agent_exit_code = coalesce(${exitCode}::int, agent_exit_code),
        agent_status = case when agent is null then null
          when coalesce(${exitCode}::int, agent_exit_code) = 0 then 'completed' else 'failed' end
      where vm_id = ${ending.vmId} and state <> 'destroyed'
        and generation = coalesce(${ending.generation ?? null}::int, generation)
        and worker_id = coalesce(${ending.workerId ?? null}, worker_id)
        and (${IS_STARTING} or not ${ending.unstarted ?? false})
      returning *`,
    sql`, settled as (
      update sessions set status = ${SESSION_AFTER[ending.reason]},
        ended_at = greatest(gone.ended_at, sessions.created_at)
      from gone where sessions.session_id = gone.session_id
        and sessions.generation = gone.session_generation and sessions.status = 'active'
        and not ${ending.keepsSession ?? false}
    ), forgotten as (
      delete from agent_secrets using gone where agent_secrets.vm_id = gone.vm_id
    )`,
  );
}

/**
 * Removes the row of a sandbox that no worker has started and whose deletion was not requested: this generation, or any
 * when it is left out.
 */
export async function forget(
  db: Kysely<Schema>,
  vmId: string,
  generation?: number,
): Promise<SandboxRow | undefined> {
  return release(
    db,
    sql`
      delete from sandboxes where vm_id = ${vmId}
        and generation = coalesce(${generation ?? null}::int, generation)
        and ${IS_STARTING} and delete_requested_at is null
      returning *`,
  );
}

/** Runs a statement that ends or removes one sandbox, and updates the counters. Locks the tenant, then the worker. */
async function release(
  db: Kysely<Schema>,
  statement: RawBuilder<unknown>,
  more: RawBuilder<unknown> = sql``,
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
    )${more}
    select * from gone`.execute(db);
  return rows[0];
}
