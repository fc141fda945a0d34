import { LIMITS, type SandboxPlacement, type WorkerSandbox } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Why a sandbox cannot be taken back. */
export type ReleaseRefusal =
  /** It is not in quarantine. */
  | 'unknown'
  /** Its worker has not said yet how it was placed. */
  | 'not_reported'
  /** Its session goes on from what the ledger has. */
  | 'of_session'
  /** The ledger has lost its tenant, too. */
  | 'no_tenant'
  /** The ledger has a sandbox with this id. */
  | 'id_in_use';

/**
 * Takes a sandbox in quarantine back into the ledger, as its worker last reported it, and counts it again. Its worker
 * learns of that by its next heartbeat. Undefined when that is done.
 */
export async function release(
  db: Kysely<Schema>,
  vmId: string,
): Promise<ReleaseRefusal | undefined> {
  const held = await db
    .selectFrom('quarantined_sandboxes')
    .select(['report', 'worker_id', 'quarantined_at'])
    .where('vm_id', '=', vmId)
    .orderBy('generation', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (held === undefined) return 'unknown';
  const { report } = held;
  if (report.placement === undefined) return 'not_reported';
  if (report.placement.agent?.session !== undefined) return 'of_session';
  if (await takeBack(db, held, report.placement)) return undefined;
  const tenant = await db
    .selectFrom('tenants')
    .select('tenant_id')
    .where('tenant_id', '=', report.tenant_id)
    .executeTakeFirst();
  return tenant === undefined ? 'no_tenant' : 'id_in_use';
}

/** A sandbox in quarantine as far as its release reads it. */
interface Held {
  readonly report: WorkerSandbox;
  readonly worker_id: string;
  readonly quarantined_at: Date;
}

/** One statement, which locks the tenant before the worker, as every change of counters does. */
async function takeBack(
  db: Kysely<Schema>,
  { report, worker_id: workerId, quarantined_at: quarantinedAt }: Held,
  placement: SandboxPlacement,
): Promise<boolean> {
  const { vm_id: vmId } = report;
  const vcpu = Math.min(report.vcpu, LIMITS.vcpuMax);
  const memoryMib = Math.min(report.memory_mib, LIMITS.memoryMibMax);
  // The clock that it was made by may have been ahead. What it used since its quarantine is plausible all the same.
  const createdAt = sql`least(${quarantinedAt}::timestamptz, ${report.created_at}::timestamptz)`;
  const { numAffectedRows } = await sql`
    with owner as (
      update tenants set active_sandboxes = active_sandboxes + 1
      where tenant_id = ${report.tenant_id}
        and not exists (select from sandboxes where vm_id = ${vmId})
      returning tenant_id
    ), reserved as (
      update workers set reserved_memory_mib = reserved_memory_mib + ${memoryMib}
      from owner where worker_id = ${workerId}
    ), left_behind as (
      delete from quarantined_sandboxes using owner where vm_id = ${vmId}
    )
    insert into sandboxes (vm_id, tenant_id, worker_id, generation, state, template, vcpu,
      cpu_fraction, memory_mib, disk_mib, rootfs, host_port, endpoint, idle_timeout_seconds,
      max_lifetime_seconds, metadata, persistence_url, agent, placement, cpu_seconds,
      agent_status, agent_exit_code, created_at, running_at, placed_at)
    select ${vmId}, owner.tenant_id, ${workerId}, ${report.generation}, ${report.state},
      ${report.template}, ${vcpu}, ${report.cpu_fraction}, ${memoryMib},
      ${report.disk_mib}, ${report.rootfs}, ${report.host_port}, ${report.endpoint},
      ${placement.idle_timeout_seconds}, ${placement.max_lifetime_seconds}, '{}',
      ${placement.agent?.persistence_url ?? null}, ${placement.agent?.kind ?? null},
      ${JSON.stringify(placement)}::json, ${report.cpu_seconds}, ${report.agent_status ?? null},
      ${report.agent_exit_code ?? null}::int, ${createdAt},
      ${report.running_at ?? null}::timestamptz, ${createdAt}
    from owner`.execute(db);
  return numAffectedRows === 1n;
}
