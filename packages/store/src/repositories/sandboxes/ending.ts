import type { EndReason, SessionStatus } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';
import { isLost } from '../lost-worker.ts';

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
  /** How long ago it ended, in milliseconds. An end before the placement is taken for one at the placement. */
  readonly endAgeMs?: number;
  /**
   * The time by the clock of the worker, for an end without an age: believed if it is between the placement and now.
   * Default: now.
   */
  readonly endedAt?: string;
  readonly cpuSeconds?: number;
  readonly agentExitCode?: number | undefined;
  /**
   * Leaves the session of the sandbox active, for a caller that starts it again or undoes its start; but not that of a
   * sandbox whose deletion was requested.
   */
  readonly keepsSession?: boolean;
}

/** Longer than any sandbox exists. PostgreSQL cannot go back as far as a worker may report. */
const MAX_AGE_MS = 100 * 365 * 24 * 3_600_000;

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

/** Ends one sandbox: see {@link endAll}. Exactly one of several concurrent callers gets the row. */
export async function end(db: Kysely<Schema>, ending: Ending): Promise<SandboxRow | undefined> {
  const [row] = await endAll(db, [ending]);
  return row;
}

/**
 * Ends any number of sandboxes in the ledger in one statement: also ends their sessions, removes the secrets of their agents
 * and releases their capacity. An agent without an exit code has failed. Leaves out those that have ended or that do not
 * match, and returns the rows of the others. Locks the sandboxes, then their tenants, and then the workers, each by id, with
 * locks that let others insert rows which refer to them.
 */
export async function endAll(
  db: Kysely<Schema>,
  endings: readonly Ending[],
): Promise<SandboxRow[]> {
  if (endings.length === 0) return [];
  const { rows } = await sql<SandboxRow>`
    with wanted as (
      select * from jsonb_to_recordset(${JSON.stringify(endings.map(columnsOf))}::jsonb) as wanted(
        vm_id text, generation int, worker_id text, unstarted boolean, reason text, end_age_ms float8,
        ended_at timestamptz, cpu_seconds float8, agent_exit_code int, session_status text, keeps_session boolean)
    ), held as (
      select sandboxes.vm_id from sandboxes join wanted using (vm_id)
      order by sandboxes.vm_id for no key update of sandboxes
    ), gone as (
      update sandboxes set state = 'destroyed', end_reason = wanted.reason,
        ended_at = least(now(), greatest(sandboxes.placed_at,
          coalesce(now() - wanted.end_age_ms * interval '1 ms', wanted.ended_at, now()))),
        active_connections = 0,
        cpu_seconds = greatest(sandboxes.cpu_seconds, coalesce(wanted.cpu_seconds, 0)),
        agent_exit_code = coalesce(wanted.agent_exit_code, sandboxes.agent_exit_code),
        agent_status = case when agent is null then null
          when coalesce(wanted.agent_exit_code, sandboxes.agent_exit_code) = 0 then 'completed'
          else 'failed' end
      from wanted join held using (vm_id)
      where sandboxes.vm_id = wanted.vm_id and state <> 'destroyed'
        and sandboxes.generation = coalesce(wanted.generation, sandboxes.generation)
        and sandboxes.worker_id = coalesce(wanted.worker_id, sandboxes.worker_id)
        and (${IS_STARTING} or not wanted.unstarted)
      returning sandboxes.*
    ), owners as (
      select tenants.tenant_id, ended.count from tenants
      join (select tenant_id, count(*)::int from gone group by tenant_id) as ended using (tenant_id)
      order by tenants.tenant_id for no key update of tenants
    ), counted as (
      update tenants set active_sandboxes = active_sandboxes - owners.count
      from owners where tenants.tenant_id = owners.tenant_id
      returning tenants.tenant_id
    ), hosts as (
      select workers.worker_id, released.memory_mib from workers
      -- To count the tenants is to have locked all of them.
      join (select worker_id, sum(memory_mib)::int as memory_mib from gone
        where (select count(*) from counted) > 0 group by worker_id) as released using (worker_id)
      order by workers.worker_id for no key update of workers
    ), freed as (
      update workers set reserved_memory_mib = workers.reserved_memory_mib - hosts.memory_mib
      from hosts where workers.worker_id = hosts.worker_id
    ), settled as (
      update sessions set status = wanted.session_status,
        ended_at = greatest(gone.ended_at, sessions.created_at)
      from gone join wanted using (vm_id) where sessions.session_id = gone.session_id
        and sessions.generation = gone.session_generation and sessions.status = 'active'
        and not (wanted.keeps_session and gone.delete_requested_at is null)
    ), forgotten as (
      delete from agent_secrets using gone where agent_secrets.vm_id = gone.vm_id
    )
    select * from gone`.execute(db);
  return rows;
}

/** The end of a sandbox whose worker is lost. */
export interface LostEnding extends Pick<Ending, 'vmId' | 'generation' | 'keepsSession'> {
  /**
   * The silence after which the worker is lost, in milliseconds: see {@link isLost}. One that an operator has removed is lost
   * at once.
   */
  readonly silentMs: number;
}

/**
 * Ends a sandbox as `worker_lost`. Undefined when it has ended, or when its worker has been heard: no report of the worker is
 * accepted between that check and the end, so that a worker which is back learns of the end with its first report.
 */
export async function endLost(
  db: Kysely<Schema>,
  { silentMs, ...ending }: LostEnding,
): Promise<SandboxRow | undefined> {
  return db.transaction().execute(async (transaction) => {
    // Locks in the order of `endAll`. After a wait, the condition is checked again.
    const { rows } = await sql`
      select from sandboxes join tenants using (tenant_id) join workers using (worker_id)
      where vm_id = ${ending.vmId}
        and (removed_at is not null or ${isLost(silentMs)})
      for no key update of sandboxes, tenants, workers`.execute(transaction);
    if (rows.length === 0) return undefined;
    return end(transaction, { ...ending, reason: 'worker_lost' });
  });
}

function columnsOf(ending: Ending) {
  return {
    vm_id: ending.vmId,
    generation: ending.generation,
    worker_id: ending.workerId,
    unstarted: ending.unstarted ?? false,
    reason: ending.reason,
    end_age_ms: ending.endAgeMs === undefined ? undefined : Math.min(ending.endAgeMs, MAX_AGE_MS),
    ended_at: ending.endedAt,
    cpu_seconds: ending.cpuSeconds,
    agent_exit_code: ending.agentExitCode,
    session_status: SESSION_AFTER[ending.reason],
    keeps_session: ending.keepsSession ?? false,
  };
}

/**
 * Removes the row of a sandbox that no worker has started and whose deletion was not requested: this generation, or any
 * when it is left out. Notes that it did, so that a VM which is left over is not taken for one that a restore has lost.
 * Locks the tenant, then the worker.
 */
export async function forget(
  db: Kysely<Schema>,
  vmId: string,
  generation?: number,
): Promise<SandboxRow | undefined> {
  const { rows } = await sql<SandboxRow>`
    with gone as (
      delete from sandboxes where vm_id = ${vmId}
        and generation = coalesce(${generation ?? null}::int, generation)
        and ${IS_STARTING} and delete_requested_at is null
      returning *
    ), counted as (
      update tenants set active_sandboxes = active_sandboxes - 1
      from gone where tenants.tenant_id = gone.tenant_id
      returning tenants.tenant_id
    ), freed as (
      update workers set reserved_memory_mib = workers.reserved_memory_mib - gone.memory_mib
      from gone where workers.worker_id = gone.worker_id and exists (select from counted)
    ), noted as (
      insert into forgotten_sandboxes (vm_id, generation) select vm_id, generation from gone
      on conflict (vm_id) do update set generation = excluded.generation, forgotten_at = now()
    )
    select * from gone`.execute(db);
  return rows[0];
}
