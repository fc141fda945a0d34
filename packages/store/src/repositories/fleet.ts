import { WORKER_TIMES, type WorkerTemplate } from '@svc/contract';
import { type Expression, type ExpressionBuilder, type Kysely, type SqlBool, sql } from 'kysely';
import type { Schema } from '../schema.ts';

/**
 * How a worker stands: `ready` takes sandboxes; `cordoned` gets no new ones; `draining` is about to end, with those that it
 * has or without; `unreachable` has been silent for longer than {@link WORKER_TIMES}.unreachableMs.
 */
export type WorkerStanding = 'ready' | 'cordoned' | 'draining' | 'unreachable';

/** A worker as its operator sees it. */
export interface FleetWorker {
  readonly worker_id: string;
  readonly standing: WorkerStanding;
  readonly cordoned: boolean;
  readonly url: string;
  /** PEM. The only certificate trusted for this worker. */
  readonly certificate: string;
  readonly version: string;
  /** Sandboxes that have not ended. */
  readonly sandboxes: number;
  readonly memory_mib: number;
  /** Memory promised to sandboxes. */
  readonly reserved_memory_mib: number;
  /** Disk that was not promised to sandboxes at its last heartbeat. Its nominal disk exceeds that of its machine. */
  readonly free_disk_mib: number | null;
  readonly templates: readonly WorkerTemplate[];
  readonly last_seen_at: Date;
  /** Whether another machine has tried to register under its id within the last minute. */
  readonly is_contested: boolean;
}

/** What an operator sees of the workers, and orders. Workers learn of orders by their next heartbeat. */
export class FleetRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Every worker that no operator has removed, by id. */
  async list(): Promise<FleetWorker[]> {
    return this.#db
      .selectFrom('workers')
      .select((worker) => [
        'worker_id',
        'cordoned',
        'url',
        'certificate',
        'version',
        'memory_mib',
        'reserved_memory_mib',
        'free_disk_mib',
        'templates',
        'heartbeat_at as last_seen_at',
        sql<boolean>`coalesce(contested_at > now() - interval '1 minute', false)`.as(
          'is_contested',
        ),
        worker
          .selectFrom('sandboxes')
          .select(sql<number>`count(*)::int`.as('live'))
          .whereRef('sandboxes.worker_id', '=', 'workers.worker_id')
          .where('state', '<>', 'destroyed')
          .$asScalar()
          .$notNull()
          .as('sandboxes'),
        sql<WorkerStanding>`case
          when ${isSilent()} then 'unreachable'
          when draining or drain_requested then 'draining'
          when cordoned then 'cordoned' else 'ready' end`.as('standing'),
      ])
      .where('removed_at', 'is', null)
      .orderBy('worker_id')
      .execute();
  }

  /** Places no sandboxes on a worker from now on. False when there is no such worker. */
  async cordon(workerId: string): Promise<boolean> {
    return this.#order(workerId, { cordoned: true });
  }

  /** Undoes {@link cordon}, and a drain that the worker has not learned of. False when there is no such worker. */
  async uncordon(workerId: string): Promise<boolean> {
    return this.#order(workerId, { cordoned: false, drain_requested: false });
  }

  /** Cordons a worker and has it end its sandboxes, and then itself. False when there is no such worker. */
  async drain(workerId: string): Promise<boolean> {
    return this.#order(workerId, { cordoned: true, drain_requested: true });
  }

  /**
   * Removes a worker that is silent and has no sandboxes left from the list. Its row stays for the records of its sandboxes.
   * A worker that registers again is back. False when there is no such worker, or not such a one.
   */
  async remove(workerId: string): Promise<boolean> {
    return this.#remove(workerId, ({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('sandboxes')
            .select('vm_id')
            .whereRef('sandboxes.worker_id', '=', 'workers.worker_id')
            .where('state', '<>', 'destroyed'),
        ),
      ),
    );
  }

  /**
   * Removes a worker that is silent from the list, whose sandboxes the control planes then end as lost, as if it had been
   * silent for long. False when there is no such worker, or not such a one.
   */
  async giveUp(workerId: string): Promise<boolean> {
    return this.#remove(workerId);
  }

  async #remove(
    workerId: string,
    condition: (eb: ExpressionBuilder<Schema, 'workers'>) => Expression<SqlBool> = ({ lit }) =>
      lit(true),
  ): Promise<boolean> {
    const result = await this.#db
      .updateTable('workers')
      .set(REMOVED)
      .where('worker_id', '=', workerId)
      .where('removed_at', 'is', null)
      .where(isSilent())
      .where(condition)
      .executeTakeFirst();
    return result.numUpdatedRows === 1n;
  }

  async #order(
    workerId: string,
    order: { readonly cordoned: boolean; readonly drain_requested?: boolean },
  ): Promise<boolean> {
    const result = await this.#db
      .updateTable('workers')
      .set(order)
      .where('worker_id', '=', workerId)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
    return result.numUpdatedRows === 1n;
  }
}

/** What becomes of the row of a worker that an operator removes. */
export const REMOVED = {
  removed_at: sql<Date>`now()`,
  cordoned: false,
  drain_requested: false,
} as const;

function isSilent() {
  const seconds = WORKER_TIMES.unreachableMs / 1000;
  return sql<boolean>`(workers.heartbeat_at < now() - make_interval(secs => ${seconds}))`;
}
