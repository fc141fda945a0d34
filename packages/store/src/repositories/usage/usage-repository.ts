import type { UsageSample } from '@svc/contract';
import type { Kysely } from 'kysely';
import type { Schema } from '../../schema.ts';
import { foldRecords } from './fold.ts';
import { ingest, type SampleVerdict } from './ingest.ts';
import type { PriceTable } from './price.ts';
import {
  type DayRange,
  listDays,
  listMetered,
  readToday,
  sumDays,
  type UsageDay,
  type UsageTotals,
} from './reading.ts';

/** What sandboxes have used. Daily sums are kept beside the records, and everything reads those. */
export class UsageRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** See {@link ingest}. */
  ingest(
    workerId: string,
    samples: readonly UsageSample[],
    prices: PriceTable,
  ): Promise<SampleVerdict[]> {
    return ingest(this.#db, workerId, samples, prices);
  }

  /** See {@link foldRecords}. */
  foldRecords(endedSecondsAgo: number, limit: number, signal: AbortSignal): Promise<number> {
    return foldRecords(this.#db, endedSecondsAgo, limit, signal);
  }

  /** See {@link readToday}. */
  today(): Promise<string> {
    return readToday(this.#db);
  }

  /** See {@link sumDays}. */
  sum(tenantId: string, range: DayRange): Promise<UsageTotals | undefined> {
    return sumDays(this.#db, tenantId, range);
  }

  /** See {@link listDays}. */
  days(tenantId: string, range: DayRange): Promise<UsageDay[]> {
    return listDays(this.#db, tenantId, range);
  }

  /** See {@link listMetered}. */
  listSandboxes(
    tenantId: string,
    page: { readonly limit: number; readonly offset: number },
  ): ReturnType<typeof listMetered> {
    return listMetered(this.#db, tenantId, page);
  }
}
