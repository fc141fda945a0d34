import { KeyedSlots } from '@svc/service-kit/concurrency';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from './caller.ts';
import { takeUntilAnswered } from './request-slots.ts';

/**
 * Bounds the requests of a tenant that are in progress on this control plane, and so its backlog of statements. Deletions
 * have a count of their own, so that nothing else that a tenant does keeps it from giving back what it has.
 */
export class TenantRequests {
  readonly #deletions: KeyedSlots;
  readonly #others: KeyedSlots;

  /** @param most for each tenant, and as many deletions */
  constructor(most: number) {
    this.#deletions = new KeyedSlots(most);
    this.#others = new KeyedSlots(most);
  }

  /** Counts an authenticated request until its connection has the answer or is gone. @throws ServiceError `too_many_requests` */
  count(request: FastifyRequest, reply: FastifyReply): void {
    const slots = request.method === 'DELETE' ? this.#deletions : this.#others;
    takeUntilAnswered(slots, callerOf(request).tenantId, reply);
  }
}
