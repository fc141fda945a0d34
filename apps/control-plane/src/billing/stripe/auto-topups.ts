import { LIMITS } from '@svc/contract';
import { backoffMs } from '@svc/service-kit/concurrency';
import type { ClaimedTopup, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import type Stripe from 'stripe';
import { type Charge, charge } from './charge.ts';
import { MAX_TOPUP_FAILURES } from './vocabulary.ts';

const INTERVAL_SECONDS = 600;
/** Top-ups that one pass sends. */
const AT_ONCE = 16;
/** Longer than a request to Stripe takes with its repetition. */
const CLAIM_SECONDS = 60;
const BACKOFF = { baseMs: 5_000, maxMs: 600_000 };
/** Stripe forgets idempotency keys after 24 hours. A later attempt could charge a second time. */
const GIVE_UP_SECONDS = 23 * 3600;

interface AutoTopupsParts {
  readonly stripe: Stripe;
  readonly ledger: Store['billing'];
  readonly logger: FastifyBaseLogger;
}

/**
 * Tops accounts up whose balance is below their threshold. A top-up is on record before it is sent, and its id is
 * Stripe's idempotency key: after a crash, any control plane sends it again and gets the outcome of the first attempt.
 */
export class AutoTopups {
  readonly #parts: AutoTopupsParts;

  constructor(parts: AutoTopupsParts) {
    this.#parts = parts;
  }

  /** Begins the top-ups that are due and sends those that are pending. */
  async run(signal: AbortSignal): Promise<void> {
    const { ledger } = this.#parts;
    await this.#giveUp();
    await ledger.beginTopups({
      intervalSeconds: INTERVAL_SECONDS,
      minCents: LIMITS.paymentCentsMin,
    });
    if (signal.aborted) return;
    const claimed = await ledger.claimTopups(AT_ONCE, CLAIM_SECONDS);
    await Promise.all(claimed.map((topup) => this.#send(topup)));
  }

  async #send(topup: ClaimedTopup): Promise<void> {
    await this.#settle(topup, await charge(this.#parts.stripe, topup));
  }

  async #settle(topup: ClaimedTopup, outcome: Charge): Promise<void> {
    const { ledger, logger } = this.#parts;
    const { topup_id: topupId, tenant_id: tenantId, amount, attempts } = topup;
    switch (outcome.kind) {
      case 'paid':
        await ledger.completeTopup({ topupId, amount });
        break;
      case 'failed':
        await this.#fail(topupId, 'failed', outcome.failure);
        break;
      case 'undecided':
        logger.warn({ err: outcome.cause, topupId, tenantId, attempts }, 'top-up is undecided');
        await ledger.postponeTopup(topupId, backoffMs(attempts, BACKOFF) / 1000);
    }
  }

  async #giveUp(): Promise<void> {
    for (const topupId of await this.#parts.ledger.findStaleTopups(GIVE_UP_SECONDS)) {
      await this.#fail(topupId, 'unknown', 'no_answer');
    }
  }

  async #fail(topupId: string, state: 'failed' | 'unknown', failure: string): Promise<void> {
    const { ledger, logger } = this.#parts;
    const outcome = await ledger.failTopup({
      topupId,
      state,
      failure,
      maxFailures: MAX_TOPUP_FAILURES,
    });
    if (outcome.ended) logger.warn({ topupId, failure, ...outcome }, 'automatic top-up failed');
  }
}
