import { Counter, type Registry } from '@svc/service-kit';
import type { FastifyBaseLogger } from 'fastify';
import type { RetentionRule } from './rules.ts';

/** The batches of one rule in one pass, so that one kind of data does not hold up the others. */
const BATCHES = 20;

/** Counts what was removed, and passes that failed. */
export interface RetentionMetrics {
  readonly removed: Counter<'kind'>;
  readonly failures: Counter<'kind'>;
}

export interface RetentionParts {
  readonly rules: readonly RetentionRule[];
  readonly metrics: RetentionMetrics;
  readonly logger: FastifyBaseLogger;
}

/** Registers the metrics that all rules share. */
export function createRetentionMetrics(registry: Registry): RetentionMetrics {
  const labels = { labelNames: ['kind'] as const, registers: [registry] };
  return {
    removed: new Counter({
      name: 'svc_retention_removed_total',
      help: 'Rows, objects or sessions that were removed or erased because their time was over, by kind.',
      ...labels,
    }),
    failures: new Counter({
      name: 'svc_retention_failures_total',
      help: 'Passes that failed to remove data of a kind.',
      ...labels,
    }),
  };
}

/**
 * Removes data whose time is over. Several control planes may do so at once: a batch skips what another one is removing.
 */
export class Retention {
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
    for (const { kind } of parts.rules) {
      parts.metrics.removed.inc({ kind }, 0);
      parts.metrics.failures.inc({ kind }, 0);
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
    const { logger, metrics } = this.#parts;
    const { kind, batch } = rule;
    let total = 0;
    let last = batch;
    try {
      for (let done = 0; done < BATCHES && last === batch && !signal.aborted; done += 1) {
        last = await rule.remove(seconds, batch, signal);
        metrics.removed.inc({ kind }, last);
        total += last;
      }
    } catch (err) {
      if (signal.aborted) return false;
      last = 0;
      metrics.failures.inc({ kind });
      logger.warn({ err, kind }, 'cannot remove expired data; the next pass will try again');
    }
    if (total > 0)
      logger.info({ kind, removed: total, olderThanSeconds: seconds }, 'removed expired data');
    return last < batch;
  }
}
