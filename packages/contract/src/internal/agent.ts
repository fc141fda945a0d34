/** The credentials of an agent in a sandbox, as sent by the control plane to the worker. */

import { type Static, Type } from 'typebox';
import { mapOf } from '../schema.ts';

/**
 * `GET /internal/v1/sandboxes/{vm_id}/agent-secrets`, for the worker that holds the sandbox. Kept in memory only,
 * and fetched again after a rotation or a restart.
 */
export const AgentSecrets = Type.Object({
  llm: Type.Object({
    api_key: Type.String(),
    /** Checked against the address rules when given, and again at each connection. */
    base_url: Type.Optional(Type.String()),
    /** The model of a session from its next task on. Absent for a one-shot agent, whose placement names the model. */
    model: Type.Optional(Type.String()),
    /** Why values of a rotated bundle cannot be used, as a sentence for the session's clients. */
    problem: Type.Optional(Type.String()),
  }),
  /** All other values of the bundles: the environment of the agent's processes. */
  env: mapOf<string>({ type: 'string' }),
  persistence_auth_header: Type.Optional(Type.String()),
});
export type AgentSecrets = Static<typeof AgentSecrets>;

/**
 * `POST /internal/v1/sandboxes/{id}/config-update` on a worker: a bundle was rotated. May arrive more than once, and
 * after a later version.
 */
export const ConfigUpdate = Type.Object({
  bundle: Type.String(),
  /** Increases with every rotation of the bundle. */
  version: Type.Integer(),
  /** Names of the bundle's keys since then. */
  keys: Type.Array(Type.String()),
});
export type ConfigUpdate = Static<typeof ConfigUpdate>;
