import { isActive, type SandboxRecord } from '@svc/contract';
import type { SandboxRow, SeenSandbox } from '@svc/store';

/** The public record of a row. */
export function toRecord(row: SandboxRow & Partial<SeenSandbox>): SandboxRecord {
  const record: SandboxRecord = {
    vm_id: row.vm_id,
    state: row.state,
    template: row.template,
    vcpu: row.vcpu ?? 1,
    cpu_fraction: row.cpu_fraction ?? 1,
    memory_mib: row.memory_mib,
    disk_mib: row.disk_mib ?? 0,
    idle_timeout_seconds: row.idle_timeout_seconds,
    max_lifetime_seconds: row.max_lifetime_seconds,
    metadata: row.metadata,
    created_at: row.created_at.toISOString(),
  };
  if (row.host_port !== null) record.host_port = row.host_port;
  if (row.endpoint !== null) record.endpoint = row.endpoint;
  if (row.rootfs !== null) record.rootfs = row.rootfs;
  if (row.running_at !== null) record.running_at = row.running_at.toISOString();
  if (row.last_seen_at !== undefined && isActive(row.state)) {
    record.last_seen_at = row.last_seen_at.toISOString();
  }
  if (row.ended_at !== null) record.ended_at = row.ended_at.toISOString();
  if (row.end_reason !== null) record.end_reason = row.end_reason;
  if (row.agent !== null) record.agent = row.agent;
  if (row.agent_status !== null) record.agent_status = row.agent_status;
  if (row.agent_exit_code !== null) record.agent_exit_code = row.agent_exit_code;
  return record;
}
