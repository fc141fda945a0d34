import { ServiceError } from '@svc/contract';
import type { BudgetState, Store } from '@svc/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../auth/caller.ts';
import { rateLimitHeaders } from './headers.ts';

/** The quota of a tenant for one kind of request. */
export interface RatePolicy {
  readonly name: string;
  readonly most: number;
  readonly windowSeconds: number;
}

export type RateLimitHook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * A hook that counts the requests of a tenant across all control planes and states the remaining quota in every
 * answer. Beyond the limit it throws `rate_limited`. It must run after the hook that sets the caller.
 */
export function limitRate(budgets: Store['requestBudgets'], policy: RatePolicy): RateLimitHook {
  return async (request, reply) => {
    const state = await budgets.count({
      budget: policy.name,
      tenantId: callerOf(request).tenantId,
      maxPerWindow: policy.most,
      windowSeconds: policy.windowSeconds,
    });
    reply.headers(rateLimitHeaders(policy, state));
    if (!state.allowed) throw refusal(state);
  };
}

function refusal(state: BudgetState): ServiceError {
  return new ServiceError('rate_limited', undefined, { retryAfterSeconds: state.resetSeconds });
}
