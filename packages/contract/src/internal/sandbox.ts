/** A sandbox as its worker reports it, which is authoritative for running VMs. */

import { type Static, Type } from 'typebox';
import { AGENT_STATUSES } from '../agents.ts';
import { END_REASONS, SANDBOX_STATES } from '../states.ts';
import { Count, INTEGER_MAX, ReportedTime, ShortText } from './bounds.ts';

export const WorkerSandbox = Type.Object({
  vm_id: ShortText(1),
  /** Increases each time the ledger places this sandbox again; the higher one wins. */
  generation: Count(),
  /** Increases with every change of this record on its worker, so that a late report never overwrites a newer one. */
  revision: Type.Optional(Count()),
  tenant_id: ShortText(1),
  template: ShortText(1),
  state: Type.Enum([...SANDBOX_STATES]),
  vcpu: Count(),
  cpu_fraction: Type.Number({ minimum: 0 }),
  memory_mib: Count(),
  disk_mib: Count(),
  rootfs: ShortText(),
  host_port: Type.Integer({ minimum: 0, maximum: 65_535 }),
  endpoint: ShortText(),
  created_at: ReportedTime,
  running_at: Type.Optional(ReportedTime),
  ended_at: Type.Optional(ReportedTime),
  end_reason: Type.Optional(Type.Enum([...END_REASONS])),
  active_connections: Count(),
  cpu_seconds: Type.Number({ minimum: 0 }),
  agent_status: Type.Optional(Type.Enum([...AGENT_STATUSES])),
  agent_exit_code: Type.Optional(Type.Integer({ minimum: -INTEGER_MAX, maximum: INTEGER_MAX })),
});
export type WorkerSandbox = Static<typeof WorkerSandbox>;

export const WorkerSandboxList = Type.Object({ sandboxes: Type.Array(WorkerSandbox) });
export type WorkerSandboxList = Static<typeof WorkerSandboxList>;
