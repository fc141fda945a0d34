import type { WorkerSandbox } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { type Judgement, judge, QUARANTINE_SECONDS } from './judge.ts';
import { type ReleaseRefusal, release } from './release.ts';

/** A sandbox in quarantine as its operator sees it. */
export interface QuarantinedSandbox {
  readonly vm_id: string;
  readonly worker_id: string;
  readonly tenant_id: string;
  readonly report: WorkerSandbox;
  readonly end_requested: boolean;
  readonly quarantined_at: Date;
  /** When it ends unless an operator decides before. */
  readonly ends_at: Date;
  /** When its worker last reported it. */
  readonly seen_at: Date;
}

/**
 * The sandboxes that workers hold and that the ledger does not know, although it never removed them: it was restored from
 * a backup that is older than they are.
 */
export class QuarantineRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** See {@link judge}. */
  judge(workerId: string, unknown: readonly WorkerSandbox[]): Promise<Judgement[]> {
    return judge(this.#db, workerId, unknown);
  }

  /** Whether the database is of a version that has a quarantine: a new one has not before the first start. */
  async exists(): Promise<boolean> {
    const { rows } = await sql<{ exists: boolean }>`
      select to_regclass('quarantined_sandboxes') is not null as exists`.execute(this.#db);
    return rows[0]?.exists === true;
  }

  /** Every sandbox in quarantine, by worker and id. */
  list(): Promise<QuarantinedSandbox[]> {
    return this.#db
      .selectFrom('quarantined_sandboxes')
      .selectAll()
      .select(
        sql<Date>`quarantined_at + make_interval(secs => ${QUARANTINE_SECONDS})`.as('ends_at'),
      )
      .orderBy('worker_id')
      .orderBy('vm_id')
      .execute();
  }

  async count(): Promise<number> {
    const { count } = await this.#db
      .selectFrom('quarantined_sandboxes')
      .select((eb) => eb.fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** See {@link release}. */
  release(vmId: string): Promise<ReleaseRefusal | undefined> {
    return release(this.#db, vmId);
  }

  /** Has a sandbox ended by its worker, with the next heartbeat. False when it is not in quarantine. */
  async end(vmId: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('quarantined_sandboxes')
      .set({ end_requested: true })
      .where('vm_id', '=', vmId)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Removes up to `limit` that no worker has reported for this long. Returns their number. */
  removeUnseen(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'quarantined_sandboxes', sql`seen_at < ${ago(seconds)}`, limit);
  }

  /** Removes up to `limit` notes of sandboxes that the ledger removed this long ago. Returns their number. */
  removeForgotten(seconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'forgotten_sandboxes', sql`forgotten_at < ${ago(seconds)}`, limit);
  }
}
