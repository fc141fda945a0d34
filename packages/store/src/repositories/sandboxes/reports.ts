import { LIMITS, WorkerSandbox } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';
import { TRANSITIONS } from './transitions.ts';

/** Fields to store. A report may have others, even with text that PostgreSQL cannot store. */
const FIELDS = Object.keys(WorkerSandbox.properties).filter((field) => field !== 'placement');

const VCPU = sql`coalesce(known.vcpu, least(report.vcpu, ${sql.lit(LIMITS.vcpuMax)}))`;

/**
 * Applies a worker's reports on its live sandboxes in one statement. A report applies to the generation it names, if
 * that is placed on this worker, the report is not older than the last one, and its state equals the stored state or
 * can be reached from it. Returns the changed rows.
 *
 * Reports never change the reserved memory, nor a known number of processors, which limits what the sandbox can have used.
 */
export async function applyReports(
  db: Kysely<Schema>,
  workerId: string,
  reports: readonly WorkerSandbox[],
): Promise<SandboxRow[]> {
  if (!reports.some(isLive)) return [];
  const { rows } = await changes(workerId, reports).execute(db);
  return rows;
}

/** The statement of {@link applyReports}. */
export function changes(
  workerId: string,
  reports: readonly WorkerSandbox[],
): RawBuilder<SandboxRow> {
  return sql<SandboxRow>`
    update sandboxes known
    set state = report.state, vcpu = ${VCPU}, cpu_fraction = report.cpu_fraction,
      disk_mib = report.disk_mib, rootfs = report.rootfs, host_port = report.host_port,
      endpoint = report.endpoint, running_at = coalesce(known.running_at, report.running_at),
      active_connections = report.active_connections,
      cpu_seconds = greatest(known.cpu_seconds, report.cpu_seconds),
      agent_status = report.agent_status, agent_exit_code = report.agent_exit_code,
      revision = coalesce(report.revision, known.revision)
    from jsonb_to_recordset(${JSON.stringify(reports.filter(isLive), FIELDS)}::jsonb) as report(
      vm_id text, generation int, revision int, state text, vcpu int, cpu_fraction float8,
      disk_mib int, rootfs text, host_port int, endpoint text, running_at timestamptz,
      active_connections int, cpu_seconds float8, agent_status text, agent_exit_code int)
    where known.vm_id = report.vm_id and known.generation = report.generation
      and known.worker_id = ${workerId} and known.state <> 'destroyed'
      and coalesce(report.revision, known.revision) >= known.revision
      and (known.state = report.state or (known.state, report.state) in
        (select * from unnest(${TRANSITIONS.from}::text[], ${TRANSITIONS.to}::text[])))
      and (known.state, known.vcpu, known.host_port, known.active_connections, known.cpu_seconds,
           known.agent_status, known.agent_exit_code, known.revision)
        is distinct from (report.state, ${VCPU}, report.host_port, report.active_connections,
           report.cpu_seconds, report.agent_status, report.agent_exit_code,
           coalesce(report.revision, known.revision))
    returning known.*`;
}

function isLive({ state }: WorkerSandbox): boolean {
  return state !== 'destroyed';
}
