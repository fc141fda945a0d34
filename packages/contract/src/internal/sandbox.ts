/** A sandbox as its worker reports it: the truth about what lives. */

import { type Static, Type } from 'typebox';
import { AGENT_STATUSES } from '../agents.ts';
import { Timestamp } from '../schema.ts';
import { END_REASONS, SANDBOX_STATES } from '../states.ts';

export const WorkerSandbox = Type.Object({
  vm_id: Type.String(),
  /** Rises each time the ledger places this sandbox anew; the higher one wins. */
  generation: Type.Integer({ minimum: 0 }),
  /** Rises with every change of this record on its worker, so that a late report never undoes a newer one. */
  revision: Type.Optional(Type.Integer({ minimum: 0 })),
  tenant_id: Type.String(),
  template: Type.String(),
  state: Type.Enum([...SANDBOX_STATES]),
  vcpu: Type.Integer(),
  cpu_fraction: Type.Number(),
  memory_mib: Type.Integer(),
  disk_mib: Type.Integer(),
  rootfs: Type.String(),
  host_port: Type.Integer(),
  endpoint: Type.String(),
  created_at: Timestamp,
  running_at: Type.Optional(Timestamp),
  ended_at: Type.Optional(Timestamp),
  end_reason: Type.Optional(Type.Enum([...END_REASONS])),
  active_connections: Type.Integer({ minimum: 0 }),
  cpu_seconds: Type.Number({ minimum: 0 }),
  agent_status: Type.Optional(Type.Enum([...AGENT_STATUSES])),
  agent_exit_code: Type.Optional(Type.Integer()),
});
export type WorkerSandbox = Static<typeof WorkerSandbox>;

export const WorkerSandboxList = Type.Object({ sandboxes: Type.Array(WorkerSandbox) });
export type WorkerSandboxList = Static<typeof WorkerSandboxList>;
