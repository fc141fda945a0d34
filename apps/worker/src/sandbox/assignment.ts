import { randomBytes } from 'node:crypto';
import { PlaceSandboxRequest, type Static } from '@svc/contract';
import { Type } from 'typebox';
import type { Clock } from '../clock.ts';

/** The sandbox that this worker was asked to run. Never changes; kept in the VM's labels. */
export const Assignment = Type.Object({
  ...Type.Omit(PlaceSandboxRequest, ['env_vars', 'agent_input']).properties,
  /** Wall milliseconds at which the maximum lifetime ends. */
  lifetime_ends_at: Type.Number(),
  /** Authenticates this worker to the agent runtime in the guest. */
  agent_token: Type.Optional(Type.String({ minLength: 32 })),
});
export type Assignment = Static<typeof Assignment>;

const AGENT_TOKEN_BYTES = 32;

/** The longest time that a create takes. An earlier creation time is due to clock skew. */
const MAX_CREATE_AGE_MS = 120_000;

/**
 * The assignment for a request. The lifetime counts from `created_at`, limited by this worker's clock, so that
 * clock skew between two machines never ends a sandbox early or keeps it forever.
 */
export function assignmentOf(
  { env_vars: _env, agent_input: _input, ...request }: PlaceSandboxRequest,
  clock: Clock,
): Assignment {
  const now = clock.wall();
  const claimed = Date.parse(request.created_at);
  const start = Math.min(now, Math.max(claimed, now - MAX_CREATE_AGE_MS));
  const { agent, max_lifetime_seconds: lifetimeSeconds } = request.placement;
  return {
    ...request,
    lifetime_ends_at: start + lifetimeSeconds * 1000,
    ...(agent === undefined ? {} : { agent_token: randomBytes(AGENT_TOKEN_BYTES).toString('hex') }),
  };
}
