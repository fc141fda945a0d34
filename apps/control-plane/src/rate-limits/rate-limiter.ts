import { ServiceError } from '@svc/contract';
import type { BudgetState, Store } from '@svc/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../auth/caller.ts';
import { rateLimitHeaders } from './headers.ts';

/** How many requests of a kind a tenant may make. */
export interface RatePolicy {
  readonly name: string;
  readonly most: number;
  readonly windowSeconds: number;
}

export type RateLimitHook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * A hook that counts a tenant's requests over all control planes and tells it on every answer what
 * is left; beyond the limit it throws `rate_limited`. Goes after the hook that sets the caller.
 */
export function limitRate(budgets: Store['requestBudgets'], policy: RatePolicy): RateLimitHook {
  return async (request, reply) => {
    const state = await budgets.count({
      budget: policy.name,
      tenantId: callerOf(request).tenantId,
      mostPerWindow: policy.most,
      windowSeconds: policy.windowSeconds,
    });
    reply.headers(rateLimitHeaders(policy, state));
    if (!state.allowed) throw refusal(state);
  };
}

function refusal(state: BudgetState): ServiceError {
  return new ServiceError('rate_limited', undefined, {
    headers: { 'retry-after': String(state.resetSeconds) },
  });
}
