import { Counter, type Registry } from '@svc/service-kit';
import type { FastifyBaseLogger } from 'fastify';
import type { RetentionRule } from './rules.ts';

/** The batches of one rule in one pass, so that one kind of data does not hold up the others. */
const BATCHES = 20;

export interface RetentionParts {
  readonly rules: readonly RetentionRule[];
  readonly registry: Registry;
  readonly logger: FastifyBaseLogger;
}

/**
 * Removes data whose time is over. Several control planes may do so at once: a batch skips what another one is removing.
 */
export class Retention {
  readonly #parts: RetentionParts;
  readonly #removed: Counter<'kind'>;
  readonly #failures: Counter<'kind'>;

  constructor(parts: RetentionParts) {
    const labels = { labelNames: ['kind'] as const, registers: [parts.registry] };
    this.#parts = parts;
    this.#removed = new Counter({
      name: 'svc_retention_removed_total',
      help: 'Rows or sessions that were removed or erased because their time was over, by kind.',
      ...labels,
    });
    this.#failures = new Counter({
      name: 'svc_retention_failures_total',
      help: 'Passes that failed to remove data of a kind.',
      ...labels,
    });
    for (const { kind } of parts.rules) {
      this.#removed.inc({ kind }, 0);
      this.#failures.inc({ kind }, 0);
    }
  }

  /**
   * Applies every rule once, in a bounded number of batches. True when nothing was left over. Never rejects: a rule that
   * fails is logged, and applied again in the next pass.
   */
  async pass(signal: AbortSignal): Promise<boolean> {
    let complete = true;
    for (const rule of this.#parts.rules) {
      if (rule.seconds !== undefined && !signal.aborted) {
        complete = (await this.#apply(rule, rule.seconds, signal)) && complete;
      }
    }
    return complete;
  }

  async #apply(rule: RetentionRule, seconds: number, signal: AbortSignal): Promise<boolean> {
    const { logger } = this.#parts;
    const { kind, batch } = rule;
    let total = 0;
    let last = batch;
    try {
      for (let done = 0; done < BATCHES && last === batch && !signal.aborted; done += 1) {
        last = await rule.remove(seconds, batch);
        this.#removed.inc({ kind }, last);
        total += last;
      }
    } catch (err) {
      last = 0;
      this.#failures.inc({ kind });
      logger.warn({ err, kind }, 'cannot remove expired data; the next pass will try again');
    }
    if (total > 0)
      logger.info({ kind, removed: total, olderThanSeconds: seconds }, 'removed expired data');
    return last < batch;
  }
}
