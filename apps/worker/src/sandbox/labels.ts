import { END_REASONS, PlacedAgent, SANDBOX_STATES, type Static } from '@svc/contract';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/**
 * What the worker writes on each VM, so that a worker started after a crash finds everything it needs:
 * whose the VM is, where in its life, and when it has to end. Holds no secret of a customer's.
 */
const PoolLabels = Type.Object({ version: Type.Literal(1), role: Type.Literal('pool') });

/** The agent of a sandbox: what is needed to go on with it. Its app and task are the guest's by then. */
export const AgentLabels = Type.Object({
  placed: Type.Omit(PlacedAgent, ['app', 'task']),
  /** Names this worker to the runtime in the guest, which knows it too. */
  token: Type.String({ minLength: 32 }),
  /** Set once a one-shot agent has ended. */
  exit_code: Type.Optional(Type.Integer()),
});
export type AgentLabels = Static<typeof AgentLabels>;

const SandboxLabels = Type.Object({
  version: Type.Literal(1),
  role: Type.Literal('sandbox'),
  vm_id: Type.String({ minLength: 1 }),
  generation: Type.Integer({ minimum: 0 }),
  revision: Type.Integer({ minimum: 0 }),
  tenant_id: Type.String({ minLength: 1 }),
  state: Type.Enum([...SANDBOX_STATES]),
  created_at: Type.String(),
  idle_timeout_seconds: Type.Integer({ minimum: 1 }),
  max_lifetime_seconds: Type.Integer({ minimum: 1 }),
  /** Wall milliseconds at which the maximum lifetime ends. */
  lifetime_ends_at: Type.Number(),
  running_at: Type.Optional(Type.String()),
  /** Set once the sandbox has begun to end: it must never be taken up again. */
  end_reason: Type.Optional(Type.Enum([...END_REASONS])),
  agent: Type.Optional(AgentLabels),
});
export type SandboxLabels = Static<typeof SandboxLabels>;

export const POOL_LABELS: Static<typeof PoolLabels> = { version: 1, role: 'pool' };

const labels = Compile(Type.Union([PoolLabels, SandboxLabels]));

/** The labels of a VM, or undefined when they are missing, incomplete or of another version. */
export function readLabels(data: unknown): SandboxLabels | Static<typeof PoolLabels> | undefined {
  return labels.Check(data) ? data : undefined;
}
