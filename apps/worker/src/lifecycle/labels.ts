import { END_REASONS, SANDBOX_STATES, type Static } from '@svc/contract';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';

/**
 * What the worker writes on each VM, so that a worker started after a crash finds everything it needs:
 * whose the VM is, where in its life, and when it has to end. Never holds a secret.
 */
const PoolLabels = Type.Object({ version: Type.Literal(1), role: Type.Literal('pool') });

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
});
export type SandboxLabels = Static<typeof SandboxLabels>;

export const POOL_LABELS: Static<typeof PoolLabels> = { version: 1, role: 'pool' };

const labels = Compile(Type.Union([PoolLabels, SandboxLabels]));

/** The labels of a VM, or undefined when they are missing, incomplete or of another version. */
export function readLabels(data: unknown): SandboxLabels | Static<typeof PoolLabels> | undefined {
  return labels.Check(data) ? data : undefined;
}
