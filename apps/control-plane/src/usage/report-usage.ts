import { type ReportUsageResponse, ServiceError, UsageSample } from '@svc/contract';
import { KeyedTokenBuckets } from '@svc/service-kit/concurrency';
import type { PriceTable, Store } from '@svc/store';
import type { FastifyBaseLogger } from 'fastify';
import { Compile } from 'typebox/compile';

/** How many refused samples of a report are named in the log. */
const MOST_LOGGED = 10;

/**
 * Reports of one worker, which sends one every ten seconds and one after ends of sandboxes, or 500 samples each to catch up. One
 * that is refused sends the same samples, and later ones, with its next report.
 */
const RATE = { perSecond: 10, burst: 100 } as const;

const samples = Compile(UsageSample);

/** Takes the usage reports of workers. */
export class UsageReports {
  readonly #store: Store['usage'];
  readonly #prices: PriceTable;
  readonly #logger: FastifyBaseLogger;
  readonly #rate: KeyedTokenBuckets;

  /** @param now a monotonic clock, in milliseconds */
  constructor(
    store: Store['usage'],
    prices: PriceTable,
    logger: FastifyBaseLogger,
    now?: () => number,
  ) {
    this.#rate = new KeyedTokenBuckets(RATE, now);
    this.#store = store;
    this.#prices = prices;
    this.#logger = logger;
  }

  /**
   * Stores what sandboxes of a worker have used. Settles every sample: a malformed or unbelievable one is refused and
   * logged, and does not hold up the others.
   * @throws ServiceError `rate_limited`
   */
  async take(workerId: string, reported: readonly unknown[]): Promise<ReportUsageResponse> {
    if (!this.#rate.take(workerId)) {
      throw new ServiceError('rate_limited', undefined, { retryAfterSeconds: 1 });
    }
    const wellFormed = reported.flatMap((sample, index) =>
      samples.Check(sample) ? [{ index, sample }] : [],
    );
    const verdicts = await this.#store.ingest(
      workerId,
      wellFormed.map(({ sample }) => sample),
      this.#prices,
    );
    const byIndex = new Map(wellFormed.map(({ index }, at) => [index, verdicts[at]]));
    const all = reported.map((_, index) => byIndex.get(index) ?? 'invalid');
    const refused = all.flatMap((reason, index) =>
      reason === 'accepted' || reason === 'known' ? [] : [{ index, reason }],
    );
    if (refused.length > 0) this.#log(workerId, reported, refused);
    return {
      accepted: all.filter((verdict) => verdict === 'accepted').length,
      known: all.filter((verdict) => verdict === 'known').length,
      refused,
    };
  }

  #log(
    workerId: string,
    reported: readonly unknown[],
    refused: ReportUsageResponse['refused'],
  ): void {
    const named = refused.slice(0, MOST_LOGGED).map(({ index, reason }) => {
      const sample = reported[index];
      return { reason, ...(samples.Check(sample) ? { sample } : {}) };
    });
    this.#logger.warn({ workerId, refused: refused.length, named }, 'refused usage of a worker');
  }
}
