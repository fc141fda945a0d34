/**
 * The worker's API for the control plane, below {@link INTERNAL_PREFIX}. Exec, files, logs and cancel use the public
 * schemas.
 */

import { type Static, Type } from 'typebox';
import { EnvVars } from '../sandboxes/env.ts';
import { Timestamp } from '../schema.ts';
import { END_REASONS } from '../states.ts';
import { OpenEnum } from './open-enum.ts';
import { AgentInput, SandboxPlacement } from './placement.ts';

export const INTERNAL_PREFIX = '/internal/v1';

/** Idempotent by (vm_id, generation): a repeated call returns the same sandbox. */
export const PlaceSandboxRequest = Type.Object({
  vm_id: Type.String({ minLength: 1, maxLength: 128 }),
  generation: Type.Integer({ minimum: 0 }),
  tenant_id: Type.String({ minLength: 1, maxLength: 128 }),
  created_at: Timestamp,
  placement: SandboxPlacement,
  env_vars: EnvVars,
  agent_input: Type.Optional(AgentInput),
});
export type PlaceSandboxRequest = Static<typeof PlaceSandboxRequest>;

export const WorkerSandboxParams = Type.Object({ id: Type.String() });
export type WorkerSandboxParams = Static<typeof WorkerSandboxParams>;

/**
 * `GET /sandboxes/{id}/ports/{port}` with `Upgrade` to this protocol: after the 101, the connection is one to a server
 * on the loopback address of the guest.
 */
export const PORT_PROTOCOL = 'svc-port.v1';

export const WorkerPortParams = Type.Object({ id: Type.String(), port: Type.String() });

export const WorkerListQuery = Type.Object({ tenant_id: Type.Optional(Type.String()) });
export type WorkerListQuery = Static<typeof WorkerListQuery>;

/** Without a reason, or with one that the worker does not know: `deleted`. */
export const DestroyQuery = Type.Object({
  reason: Type.Optional(OpenEnum(END_REASONS)),
});
export type DestroyQuery = Static<typeof DestroyQuery>;

export const WorkerHealth = Type.Object({
  status: Type.Literal('ok'),
  worker_id: Type.String(),
  version: Type.String(),
});
export type WorkerHealth = Static<typeof WorkerHealth>;
