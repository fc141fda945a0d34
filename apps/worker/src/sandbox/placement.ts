import { randomBytes } from 'node:crypto';
import type { PlacedAgent, PlaceSandboxRequest } from '@svc/contract';
import type { Clock } from '../clock.ts';
import type { AgentLabels } from './labels.ts';

/** What a sandbox is and whose, fixed when it is placed on this worker. */
export interface Placement {
  readonly vmId: string;
  readonly generation: number;
  readonly tenantId: string;
  readonly template: string;
  readonly createdAt: string;
  readonly idleTimeoutSeconds: number;
  readonly maxLifetimeSeconds: number;
  /** Wall milliseconds. */
  readonly lifetimeEndsAt: number;
  readonly agent?: Pick<AgentLabels, 'placed' | 'token'> | undefined;
}

const AGENT_TOKEN_BYTES = 32;

/** How far back a creation time is believed: a create takes at most this long, the rest is clock skew. */
const MAX_CREATE_AGE_MS = 120_000;

/**
 * The placement that a request asks for. The lifetime counts from `created_at`, held to this worker's
 * clock, so that skewed clocks of two machines never end a sandbox early or keep it for ever.
 */
export function placementOf(request: PlaceSandboxRequest, clock: Clock): Placement {
  const now = clock.wall();
  const claimed = Date.parse(request.created_at);
  const start = Math.min(now, Math.max(claimed, now - MAX_CREATE_AGE_MS));
  return {
    vmId: request.vm_id,
    generation: request.generation,
    tenantId: request.tenant_id,
    template: request.template,
    createdAt: request.created_at,
    idleTimeoutSeconds: request.idle_timeout_seconds,
    maxLifetimeSeconds: request.max_lifetime_seconds,
    lifetimeEndsAt: start + request.max_lifetime_seconds * 1000,
    agent: request.agent === undefined ? undefined : agentOf(request.agent),
  };
}

function agentOf({ app: _app, task: _task, ...placed }: PlacedAgent): Placement['agent'] {
  return { placed, token: randomBytes(AGENT_TOKEN_BYTES).toString('hex') };
}
