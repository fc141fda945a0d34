/** An agent on a sandbox, as control plane and worker speak of it. Keys travel apart, see {@link AgentSecrets}. */

import { type Static, Type } from 'typebox';
import { AGENTS } from '../agents.ts';
import { AppJson } from '../sandboxes/app-json.ts';
import { mapOf } from '../schema.ts';
import { LLM_VENDORS } from '../vendors.ts';

/** Part of `PlaceSandboxRequest`: the agent that runs in the sandbox from its start. */
export const PlacedAgent = Type.Object({
  kind: Type.Enum([...AGENTS]),
  /** Interactive for a session; else a one-shot agent, with its task. */
  mode: Type.Enum(['session', 'one_shot']),
  vendor: Type.Enum([...LLM_VENDORS]),
  /** Always filled by the control plane: the request's, else the bundle's `LLM_MODEL`, else the vendor's default. */
  model: Type.Optional(Type.String()),
  wire_version: Type.Unsafe<1 | 2>({ type: 'integer', enum: [1, 2] }),
  app: Type.Optional(AppJson),
  task: Type.Optional(Type.String()),
  /** Resume identifier of codex. */
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
  /** Where state goes after each turn, as the customer named it. Its Authorization header is a secret. */
  persistence_url: Type.Optional(Type.String()),
});
export type PlacedAgent = Static<typeof PlacedAgent>;

/**
 * `GET /internal/v1/sandboxes/{vm_id}/agent-secrets`, for the worker that holds the sandbox. Kept in memory only;
 * fetched anew after a rotation and after a restart.
 */
export const AgentSecrets = Type.Object({
  llm: Type.Object({
    api_key: Type.String(),
    /** Checked against the address rules when it was given; checked again at each connection. */
    base_url: Type.Optional(Type.String()),
    /** The model to use where the placement names none. */
    model: Type.Optional(Type.String()),
  }),
  /** Every other value of the bundles: environment of the agent's processes. */
  env: mapOf<string>({ type: 'string' }),
  persistence_auth_header: Type.Optional(Type.String()),
});
export type AgentSecrets = Static<typeof AgentSecrets>;

/** `POST /internal/v1/sandboxes/{id}/config-update` on a worker: bundles were rotated; these keys are new. */
export const ConfigUpdate = Type.Object({ keys: Type.Array(Type.String()) });
export type ConfigUpdate = Static<typeof ConfigUpdate>;
