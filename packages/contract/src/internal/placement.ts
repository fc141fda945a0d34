/**
 * The placement of a sandbox: everything that defines its VM and its life. The control plane derives it from a create
 * request, the ledger stores it, the worker's API accepts it, and the VM's labels keep it for the next worker process.
 * All of them pass it on as one value, so that a new field is declared here, or in `sizeFields`, and read where it
 * takes effect.
 */

import { type Static, Type } from 'typebox';
import { AGENT_SIZES, AGENTS } from '../agents.ts';
import { AppJson } from '../sandboxes/app-json.ts';
import { type CreateSandboxRequest, effectiveTimeouts } from '../sandboxes/create.ts';
import { givenSize, SandboxSize } from '../sandboxes/size.ts';
import { ScopeId } from '../scope-id.ts';
import { LLM_VENDORS } from '../vendors.ts';

/**
 * The agent that runs in a sandbox from its start. Its keys are sent separately, see `AgentSecrets`. A worker refuses an
 * agent, a mode or a vendor that it does not know, since nothing else can stand for it.
 */
export const PlacedAgent = Type.Object({
  kind: Type.Enum([...AGENTS]),
  /** The build that the image must carry; absent: any. */
  version: Type.Optional(Type.String()),
  /** Whether the agent serves a session. Otherwise it is the one-shot agent of a sandbox. */
  mode: Type.Enum(['session', 'one_shot']),
  vendor: Type.Enum([...LLM_VENDORS]),
  /** Always set by the control plane: from the request, else the bundle's `LLM_MODEL`, else the vendor's default. */
  model: Type.Optional(Type.String()),
  wire_version: Type.Unsafe<1 | 2>({ type: 'integer', enum: [1, 2] }),
  /** Whether a one-shot agent was given no task, and so runs those of its clients. */
  interactive: Type.Optional(Type.Boolean()),
  /** The resume identifier for codex. */
  resume_id: Type.Optional(Type.String()),
  session: Type.Optional(
    Type.Object({
      chat_session_id: Type.String(),
      generation: Type.Integer({ minimum: 1 }),
      user_id: Type.String(),
      app_id: Type.String(),
      set_id: Type.String(),
      resumed: Type.Boolean(),
    }),
  ),
  /** Where state is saved after each turn, as the customer gave it. Its Authorization header is a secret. */
  persistence_url: Type.Optional(Type.String()),
});
export type PlacedAgent = Static<typeof PlacedAgent>;

/** The input of an agent. It is customer content, so neither the ledger nor the VM's labels store it. */
export const AgentInput = Type.Object({
  app: Type.Optional(AppJson),
  /** The task of a one-shot agent. */
  task: Type.Optional(Type.String()),
});
export type AgentInput = Static<typeof AgentInput>;

/** A workspace of the tenant, by its scope. */
export const PlacedWorkspace = Type.Object({ app_id: ScopeId, capset_id: ScopeId });
export type PlacedWorkspace = Static<typeof PlacedWorkspace>;

/** A sandbox as placed on a worker. Contains no secrets. */
export const SandboxPlacement = Type.Object({
  template: Type.String({ minLength: 1, maxLength: 128 }),
  size: SandboxSize,
  idle_timeout_seconds: Type.Integer({ minimum: 1 }),
  max_lifetime_seconds: Type.Integer({ minimum: 1 }),
  agent: Type.Optional(PlacedAgent),
  /** The workspace that is mounted, one of the sandbox's tenant. */
  workspace: Type.Optional(PlacedWorkspace),
});
export type SandboxPlacement = Static<typeof SandboxPlacement>;

/** The placement for a create request. Sizes that it does not name are those of its agent. */
export function placementFor(
  request: CreateSandboxRequest,
  agent: PlacedAgent | undefined,
): SandboxPlacement {
  const { idleTimeoutSeconds, maxLifetimeSeconds } = effectiveTimeouts(request);
  return {
    template: request.template,
    size: { ...(agent === undefined ? {} : AGENT_SIZES[agent.kind]), ...givenSize(request) },
    idle_timeout_seconds: idleTimeoutSeconds,
    max_lifetime_seconds: maxLifetimeSeconds,
    ...(agent === undefined ? {} : { agent }),
    ...workspaceOf(request),
  };
}

/** Sessions have no workspace: their create request cannot name one. */
function workspaceOf({
  workspace_enabled,
  app_id,
  capset_id,
}: CreateSandboxRequest): Pick<SandboxPlacement, 'workspace'> {
  if (workspace_enabled !== true || app_id === undefined || capset_id === undefined) return {};
  return { workspace: { app_id, capset_id } };
}
