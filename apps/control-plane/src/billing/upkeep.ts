import { SingleFlight, settledWithin, sleep } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';

const INTERVAL_MS = 10_000;
const OPENING_INTERVAL_MS = 600_000;
const TENANTS_AT_ONCE = 200;
/** Records that are posted in one transaction. */
const RECORDS_PER_POSTING = 5_000;
const ACCOUNTS_AT_ONCE = 500;
/** Longer than a request to Stripe takes with its repetition. */
const CLOSE_MS = 25_000;

/** One duty of the upkeep. */
interface Step {
  run(signal: AbortSignal): Promise<void>;
}

/** What the upkeep works on. */
export interface BillingUpkeepParts {
  readonly ledger: Store['billing'];
  /** Credit of accounts that an earlier version has created without. */
  readonly grantCents: number;
  /** Charges accounts whose balance is low, if a payment provider can. */
  readonly topups: Step | undefined;
  /** Ends sandboxes without credit, if the installation enforces it. */
  readonly enforcer: Step | undefined;
  readonly logger: FastifyBaseLogger;
}

/**
 * What billing does by itself: posts usage, tops accounts up and enforces credit. Each control plane does it; locks and
 * claims in the database divide the work. Posting never waits for a payment provider or a worker that does not answer.
 */
export class BillingUpkeep {
  readonly #parts: BillingUpkeepParts;
  readonly #closing = new AbortController();
  readonly #topups = new SingleFlight<void>();
  readonly #enforcement = new SingleFlight<void>();
  #loop: Promise<void> | undefined;
  #openedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: BillingUpkeepParts) {
    this.#parts = parts;
  }

  /** Begins. */
  start(): void {
    this.#loop ??= this.#repeat(this.#closing.signal);
  }

  /**
   * Stops after what is in progress, or after 25 seconds. A top-up that is not answered by then is repeated later, with the
   * same idempotency key.
   */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the control plane ends'));
    // Joins the runs in progress, and begins none.
    const charges = this.#chargeAndEnforce(this.#closing.signal);
    await settledWithin(Promise.all([this.#loop, charges]), CLOSE_MS);
  }

  /**
   * One pass: posts usage, then begins to top up and to enforce credit, unless an earlier pass is still at it. A step that
   * fails is logged, and does not keep the others from running.
   */
  async pass(signal: AbortSignal): Promise<void> {
    await this.#attempt('open accounts', () => this.#openAccounts(), signal);
    await this.#attempt('post usage', () => this.#post(signal), signal);
    void this.#chargeAndEnforce(signal);
  }

  /** Never rejects. In this order, so that an account which can be topped up is not told that its credit is exhausted. */
  async #chargeAndEnforce(signal: AbortSignal): Promise<void> {
    const { topups, enforcer } = this.#parts;
    await this.#topups.run(() =>
      this.#attempt('top accounts up', async () => topups?.run(signal), signal),
    );
    await this.#enforcement.run(() =>
      this.#attempt('enforce credit', async () => enforcer?.run(signal), signal),
    );
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.pass(signal);
      await sleep(INTERVAL_MS, signal, { ref: false });
    }
  }

  async #attempt(what: string, step: () => Promise<void>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    try {
      await step();
    } catch (err) {
      this.#parts.logger.warn({ err }, `cannot ${what}; the next pass will try again`);
    }
  }

  async #post(signal: AbortSignal): Promise<void> {
    const { ledger } = this.#parts;
    let tenants: string[] = [];
    do {
      tenants = await ledger.findUnposted(TENANTS_AT_ONCE, tenants.at(-1));
      for (const tenantId of tenants) {
        let posted = RECORDS_PER_POSTING;
        while (posted === RECORDS_PER_POSTING && !signal.aborted) {
          posted = await ledger.postUsage(tenantId, RECORDS_PER_POSTING);
        }
      }
    } while (tenants.length === TENANTS_AT_ONCE && !signal.aborted);
  }

  async #openAccounts(): Promise<void> {
    if (performance.now() - this.#openedAt < OPENING_INTERVAL_MS) return;
    const { ledger, grantCents } = this.#parts;
    let opened = ACCOUNTS_AT_ONCE;
    while (opened === ACCOUNTS_AT_ONCE) {
      opened = await ledger.openAccounts(grantCents, ACCOUNTS_AT_ONCE);
    }
    this.#openedAt = performance.now();
  }
}
