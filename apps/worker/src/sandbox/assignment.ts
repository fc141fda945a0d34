import { randomBytes } from 'node:crypto';
import { PlaceSandboxRequest, type Static } from '@svc/contract';
import { Type } from 'typebox';
import type { Clock } from '../clock.ts';

/** A sandbox as this worker was asked to run it; fixed from then on, and kept in the VM's labels. */
export const Assignment = Type.Object({
  ...Type.Omit(PlaceSandboxRequest, ['env_vars', 'agent_input']).properties,
  /** Wall milliseconds at which the maximum lifetime ends. */
  lifetime_ends_at: Type.Number(),
  /** Names this worker to the agent runtime in the guest, which knows it too. */
  agent_token: Type.Optional(Type.String({ minLength: 32 })),
});
export type Assignment = Static<typeof Assignment>;

const AGENT_TOKEN_BYTES = 32;

/** A create takes at most this long; a creation time that is further back shows clock skew. */
const MAX_CREATE_AGE_MS = 120_000;

/**
 * The assignment that a request makes. The lifetime counts from `created_at`, held to this worker's
 * clock, so that skewed clocks of two machines never end a sandbox early or keep it for ever.
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
