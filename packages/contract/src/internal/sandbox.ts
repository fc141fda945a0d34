/** Sandboxes as their workers report them, which are authoritative for running VMs. */

import { type Static, Type } from 'typebox';
import { AGENT_STATUSES, type AgentStatus } from '../agents.ts';
import { END_REASONS, type EndReason, SANDBOX_STATES, type SandboxState } from '../states.ts';
import { Count, INTEGER_MAX, ReportedTime, ShortText, Total } from './bounds.ts';
import { knownOr, OpenEnum } from './open-enum.ts';
import { SandboxPlacement } from './placement.ts';

export const WorkerSandbox = Type.Object({
  vm_id: ShortText(1),
  /** Increases each time the ledger places this sandbox again; the higher one wins. */
  generation: Count(),
  /** Increases with every change of this record on its worker, so that a late report never overwrites a newer one. */
  revision: Type.Optional(Count()),
  tenant_id: ShortText(1),
  template: ShortText(1),
  state: OpenEnum(SANDBOX_STATES),
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
  /** How long ago it ended, in milliseconds. Unlike `ended_at`, an age does not depend on the clock of the worker. */
  end_age_ms: Type.Optional(Total),
  end_reason: Type.Optional(OpenEnum(END_REASONS)),
  active_connections: Count(),
  cpu_seconds: Type.Number({ minimum: 0 }),
  agent_status: Type.Optional(OpenEnum(AGENT_STATUSES)),
  agent_exit_code: Type.Optional(Type.Integer({ minimum: -INTEGER_MAX, maximum: INTEGER_MAX })),
  /** Only of a sandbox in quarantine: what the ledger needs to take it back. */
  placement: Type.Optional(SandboxPlacement),
});
/** A report as it arrives. Its worker may be newer than the reader: see {@link knownSandbox}. */
export type ReportedSandbox = Static<typeof WorkerSandbox>;
/** A report with values that this version knows. */
export type WorkerSandbox = Omit<ReportedSandbox, 'state' | 'end_reason' | 'agent_status'> & {
  state: SandboxState;
  end_reason?: EndReason;
  agent_status?: AgentStatus;
};

export const WorkerSandboxList = Type.Object({ sandboxes: Type.Array(WorkerSandbox) });
export type WorkerSandboxList = Static<typeof WorkerSandboxList>;

/**
 * A report in the words of this version. A sandbox in an unknown state counts as running, so that it keeps what it has; an
 * end for an unknown reason as `drained`, one in order; an unknown status of an agent as none.
 */
export function knownSandbox(report: ReportedSandbox): WorkerSandbox {
  const { state, end_reason: reason, agent_status: status, ...rest } = report;
  const known = status === undefined ? undefined : knownOr(AGENT_STATUSES, status, undefined);
  return {
    ...rest,
    state: knownOr(SANDBOX_STATES, state, 'running'),
    ...(reason === undefined ? {} : { end_reason: knownOr(END_REASONS, reason, 'drained') }),
    ...(known === undefined ? {} : { agent_status: known }),
  };
}
