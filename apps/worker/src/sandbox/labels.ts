import { END_REASONS, SANDBOX_STATES, type Static } from '@svc/contract';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Assignment } from './assignment.ts';

/** The progress of a sandbox, as far as a restarted worker needs it. */
const PROGRESS = {
  state: Type.Enum([...SANDBOX_STATES]),
  revision: Type.Integer({ minimum: 0 }),
  running_at: Type.Optional(Type.String()),
  /** The VM's CPU time, and the monotonic time, at which its usage begins: it may have been idle in the pool before. */
  metered_from: Type.Optional(Type.Object({ cpu_ms: Type.Number(), at_ms: Type.Number() })),
  /** Set once the sandbox has begun to end: from then on a restarted worker only ends it. */
  end_reason: Type.Optional(Type.Enum([...END_REASONS])),
  /** Set once the workspace is in the VM: from then on it must not be loaded again. */
  workspace_loaded: Type.Optional(Type.Literal(true)),
  /** Set once a one-shot agent has ended. */
  agent_exit_code: Type.Optional(Type.Integer()),
  /** Set while the ledger, which was restored, does not know the sandbox: from then on a restarted worker holds it. */
  quarantined: Type.Optional(Type.Boolean()),
};

const Progress = Type.Object(PROGRESS);
export type Progress = Static<typeof Progress>;

const PoolLabels = Type.Object({ version: Type.Literal(1), role: Type.Literal('pool') });

const SandboxLabels = Type.Object({
  version: Type.Literal(1),
  role: Type.Literal('sandbox'),
  ...Assignment.properties,
  ...PROGRESS,
});

/**
 * The labels that the worker writes on each VM. From them, a worker that starts after a crash learns the purpose and the
 * progress of each VM. They hold no secrets of customers.
 */
export type VmLabels = Static<typeof PoolLabels> | Static<typeof SandboxLabels>;

export const POOL_LABELS: Static<typeof PoolLabels> = { version: 1, role: 'pool' };

/** The labels of a sandbox's VM. */
export function sandboxLabels(assignment: Assignment, progress: Progress): VmLabels {
  return { version: 1, role: 'sandbox', ...assignment, ...progress };
}

/** The content of the labels of a VM. */
export type VmOwner =
  | { readonly role: 'pool' }
  | { readonly role: 'sandbox'; readonly assignment: Assignment; readonly progress: Progress };

const labels = Compile(Type.Union([PoolLabels, SandboxLabels]));

/** Reads the labels of a VM; undefined when they are missing, incomplete or of another version. */
export function readLabels(data: unknown): VmOwner | undefined {
  if (!labels.Check(data)) return undefined;
  if (data.role === 'pool') return { role: 'pool' };
  const {
    version: _version,
    role,
    state,
    revision,
    running_at,
    metered_from,
    end_reason,
    workspace_loaded,
    agent_exit_code,
    quarantined,
    ...assignment
  } = data;
  const progress = {
    state,
    revision,
    ...(running_at === undefined ? {} : { running_at }),
    ...(metered_from === undefined ? {} : { metered_from }),
    ...(end_reason === undefined ? {} : { end_reason }),
    ...(workspace_loaded === undefined ? {} : { workspace_loaded }),
    ...(agent_exit_code === undefined ? {} : { agent_exit_code }),
    ...(quarantined === undefined ? {} : { quarantined }),
  };
  return { role, assignment, progress };
}
