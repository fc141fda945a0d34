import { isServiceError } from '@svc/contract';
import type { CreditNotice, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type { Fleet } from '../workers/fleet.ts';

/** Time between the cancel and the end of a sandbox. */
const GRACE_SECONDS = 60;
/** Sandboxes that one pass tells, and that it ends. */
const AT_ONCE = 32;
/** Longer than a cancel takes; another control plane tries again after it. */
const TELL_SECONDS = 45;
/** Longer than an end takes. */
const END_SECONDS = 75;
/** A sandbox that cannot be told ends nevertheless. */
const MAX_TELLS = 3;

interface CreditEnforcerParts {
  readonly store: Pick<Store, 'billing' | 'sandboxes'>;
  readonly fleet: Pick<Fleet, 'worker'>;
  readonly logger: FastifyBaseLogger;
}

/**
 * Ends the sandboxes of accounts without credit: a cancel with reason `credits_exhausted`, and after a minute the end,
 * unless credit has arrived. What is to be done is in the database, so any control plane continues it.
 */
export class CreditEnforcer {
  readonly #parts: CreditEnforcerParts;

  constructor(parts: CreditEnforcerParts) {
    this.#parts = parts;
  }

  /** Tells and ends the sandboxes that are due. Does not wait for workers any longer once `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { billing } = this.#parts.store;
    await billing.updateNotices();
    const untold = await billing.claimUntold(AT_ONCE, TELL_SECONDS);
    await Promise.all(untold.map((notice) => this.#tell(notice, signal)));
    const overdue = await billing.claimOverdue(AT_ONCE, END_SECONDS);
    await Promise.all(overdue.map((notice) => this.#end(notice, signal)));
  }

  async #tell(notice: CreditNotice, signal: AbortSignal): Promise<void> {
    const { store, fleet, logger } = this.#parts;
    const { vm_id: vmId, worker_id: workerId, attempts } = notice;
    try {
      const worker = await fleet.worker(workerId);
      await worker.cancel(vmId, 'credits_exhausted', signal);
    } catch (err) {
      // A paused sandbox, or one that is starting or ending, has nobody to tell.
      const cannotBeTold =
        isServiceError(err, 'sandbox_not_running') || isServiceError(err, 'sandbox_not_found');
      if (!cannotBeTold && attempts < MAX_TELLS) {
        logger.warn({ err, vmId, workerId }, 'cannot tell a sandbox that its credit is exhausted');
        return;
      }
    }
    await store.billing.noteTold(vmId, GRACE_SECONDS);
  }

  /** A failure leaves the notice for the next attempt. */
  async #end(notice: CreditNotice, signal: AbortSignal): Promise<void> {
    const { store, fleet, logger } = this.#parts;
    const { vm_id: vmId, generation, worker_id: workerId } = notice;
    const reason = 'credits_exhausted';
    try {
      const worker = await fleet.worker(workerId);
      await worker.destroy(vmId, reason, { signal });
    } catch (err) {
      if (!isServiceError(err, 'sandbox_not_found')) {
        logger.warn({ err, vmId, workerId }, 'cannot end a sandbox without credit yet');
        return;
      }
    }
    await store.sandboxes.end({ vmId, generation, reason });
  }
}
