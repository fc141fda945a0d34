import { isActive, type WorkerSandbox } from '@svc/contract';
import type { SandboxRow } from '@svc/store';

/** The ledger's rows, updated by current reports of their workers. The ledger itself follows at the next heartbeat. */
export function mergeReports<Row extends SandboxRow>(
  rows: readonly Row[],
  reports: readonly WorkerSandbox[],
): Row[] {
  const byId = new Map(reports.map((report) => [report.vm_id, report]));
  return rows.map((row) => {
    const report = byId.get(row.vm_id);
    return report !== undefined && isNewer(report, row) ? merge(row, report) : row;
  });
}

/** A destroyed sandbox stays destroyed, and only the ledger reports the end of one. */
function isNewer(report: WorkerSandbox, row: SandboxRow): boolean {
  return (
    isActive(row.state) &&
    isActive(report.state) &&
    report.generation === row.generation &&
    (report.revision ?? row.revision) >= row.revision
  );
}

function merge<Row extends SandboxRow>(row: Row, report: WorkerSandbox): Row {
  return {
    ...row,
    state: report.state,
    vcpu: row.vcpu ?? report.vcpu,
    cpu_fraction: report.cpu_fraction,
    disk_mib: report.disk_mib,
    rootfs: report.rootfs,
    host_port: report.host_port,
    endpoint: report.endpoint,
    agent_status: report.agent_status ?? null,
    agent_exit_code: report.agent_exit_code ?? null,
  };
}
