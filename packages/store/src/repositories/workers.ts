import {
  AgentBuild,
  type Capacity,
  type FreeCapacity,
  type HeartbeatRequest,
  type RegisterWorkerRequest,
  WorkerTemplate,
} from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../batch-load.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema, WorkerRow } from '../schema.ts';

/** Fields to store. A report may have others, even with text that PostgreSQL cannot store. */
const TEMPLATE_FIELDS = [WorkerTemplate, AgentBuild].flatMap(({ properties }) =>
  Object.keys(properties),
);

/** The workers of the fleet: their addresses, capacities and last heartbeats. */
export class WorkerRepository {
  readonly #db: Kysely<Schema>;
  readonly #worker: BatchLoad<string, WorkerRow>;

  /** @param lookups connections for statements that serve many requests */
  constructor(db: Kysely<Schema>, lookups: Kysely<Schema>) {
    this.#db = db;
    this.#worker = batchLoad((ids) => load(lookups, ids));
  }

  async find(workerId: string): Promise<WorkerRow | undefined> {
    return this.#worker(workerId);
  }

  async list(): Promise<WorkerRow[]> {
    return this.#db.selectFrom('workers').selectAll().orderBy('worker_id').execute();
  }

  /**
   * How many workers sent a heartbeat within `reachableMs`, how many did not, and the age of the oldest last heartbeat
   * in seconds, 0 without workers. Leaves out those that were removed.
   */
  async heartbeats(reachableMs: number): Promise<{
    readonly reachable: number;
    readonly unreachable: number;
    readonly oldest: number;
  }> {
    const recent = sql<boolean>`heartbeat_at > ${ago(reachableMs / 1000)}`;
    const found = await this.#db
      .selectFrom('workers')
      .select((eb) => [
        eb.fn.countAll<string>().as('all'),
        eb.fn.countAll<string>().filterWhere(recent).as('reachable'),
        sql<number>`coalesce(extract(epoch from now() - min(heartbeat_at)), 0)::float8`.as(
          'oldest',
        ),
      ])
      .where('removed_at', 'is', null)
      .executeTakeFirstOrThrow();
    const reachable = Number(found.reachable);
    return { reachable, unreachable: Number(found.all) - reachable, oldest: found.oldest };
  }

  /** Adds a worker, or updates one that has restarted. */
  async register(worker: RegisterWorkerRequest): Promise<void> {
    const facts = {
      url: worker.url,
      certificate: worker.certificate,
      version: worker.version,
      draining: worker.draining ?? false,
      ...capacityColumns(worker.capacity, worker.templates),
    };
    await this.#db
      .insertInto('workers')
      .values({ worker_id: worker.worker_id, ...facts })
      .onConflict((conflict) =>
        conflict.column('worker_id').doUpdateSet({
          ...facts,
          free_memory_mib: null,
          drain_requested: false,
          removed_at: null,
          registered_at: sql`now()`,
          heartbeat_at: sql`now()`,
        }),
      )
      .execute();
  }

  /** Records a heartbeat and returns what an operator has ordered. Undefined when the worker is not registered. */
  async heartbeat(
    workerId: string,
    report: HeartbeatRequest,
  ): Promise<{ readonly drain: boolean } | undefined> {
    const worker = await this.#db
      .updateTable('workers')
      .set({
        ...capacityColumns(report.capacity, report.templates),
        ...freeColumns(report.free),
        draining: report.draining ?? false,
        heartbeat_at: sql`now()`,
      })
      .where('worker_id', '=', workerId)
      .where('removed_at', 'is', null)
      .returning('drain_requested as drain')
      .executeTakeFirst();
    return worker;
  }

  /** Ids of the workers without a heartbeat for this long that have live sandboxes in the ledger. */
  async findLost(silentMs: number): Promise<string[]> {
    const { rows } = await sql<{ worker_id: string }>`
      select worker_id from workers
      where heartbeat_at < now() - make_interval(secs => ${silentMs / 1000})
        and exists (select from sandboxes
                    where sandboxes.worker_id = workers.worker_id and state <> 'destroyed')`.execute(
      this.#db,
    );
    return rows.map((row) => row.worker_id);
  }

  /** Removes up to `limit` workers without a heartbeat for this long and without a record of a sandbox. Returns their number. */
  removeSilent(seconds: number, limit: number): Promise<number> {
    const isSilent = sql`heartbeat_at < ${ago(seconds)}
      and not exists (select from sandboxes where sandboxes.worker_id = workers.worker_id)`;
    return removeBatch(this.#db, 'workers', isSilent, limit);
  }
}

function capacityColumns(capacity: Capacity, templates: readonly WorkerTemplate[]) {
  return {
    vcpu: capacity.vcpu,
    memory_mib: capacity.memory_mib,
    disk_mib: capacity.disk_mib,
    templates: JSON.stringify(templates, TEMPLATE_FIELDS),
  };
}

function freeColumns(free: FreeCapacity) {
  return { free_memory_mib: free.memory_mib, free_disk_mib: free.disk_mib };
}

async function load(
  db: Kysely<Schema>,
  ids: readonly string[],
): Promise<(WorkerRow | undefined)[]> {
  const rows = await db
    .selectFrom('workers')
    .selectAll()
    .where('worker_id', 'in', [...new Set(ids)])
    .execute();
  const byId = new Map(rows.map((row) => [row.worker_id, row]));
  return ids.map((id) => byId.get(id));
}
