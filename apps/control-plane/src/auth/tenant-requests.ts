import { ServiceError } from '@svc/contract';
import { KeyedSlots } from '@svc/service-kit/concurrency';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from './caller.ts';

const RETRY_AFTER_SECONDS = '1';

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
    const release = slots.take(callerOf(request).tenantId);
    if (release === undefined) {
      throw new ServiceError('too_many_requests', undefined, {
        headers: { 'retry-after': RETRY_AFTER_SECONDS },
      });
    }
    if (reply.raw.closed) release();
    else reply.raw.once('close', release);
  }
}
