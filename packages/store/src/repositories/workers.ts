import {
  AgentBuild,
  type Capacity,
  type FreeCapacity,
  type HeartbeatRequest,
  type RegisterWorkerRequest,
  type RenewLeaseRequest,
  WORKER_TIMES,
  WorkerTemplate,
} from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../batch-load.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { Schema, WorkerRow } from '../schema.ts';
import { isLost } from './lost-worker.ts';

/** Fields to store. A report may have others, even with text that PostgreSQL cannot store. */
const TEMPLATE_FIELDS = [WorkerTemplate, AgentBuild].flatMap(({ properties }) =>
  Object.keys(properties),
);

/** Templates of a worker to store, and builds of agents of each: every placement reads them. */
const MOST_TEMPLATES = 64;
const MOST_AGENTS = 64;

/** A worker without sandboxes that was last heard of before that has gone away. */
const RECENT_SECONDS = 3600;

interface LostRow {
  readonly given_up: readonly string[];
  readonly lost: readonly string[];
  readonly all_known: number;
  readonly silent: number;
}
const NONE_LOST: LostRow = { given_up: [], lost: [], all_known: 0, silent: 0 };

/** The workers of the fleet: their addresses, capacities and last heartbeats. */
export class WorkerRepository {
  readonly #db: Kysely<Schema>;
  readonly #worker: BatchLoad<string, WorkerRow>;

  /**
   * @param db connections that prepare statements, whose texts are therefore few and fixed
   * @param lookups connections for statements that serve many requests
   */
  constructor(db: Kysely<Schema>, lookups: Kysely<Schema>) {
    this.#db = db;
    this.#worker = batchLoad((ids) => load(lookups, ids));
  }

  async find(workerId: string): Promise<WorkerRow | undefined> {
    return this.#worker(workerId);
  }

  /** Whether any worker is registered, and was not removed. */
  async isAny(): Promise<boolean> {
    const workers = await this.#db
      .selectFrom('workers')
      .select('worker_id')
      .where('removed_at', 'is', null)
      .limit(1)
      .execute();
    return workers.length > 0;
  }

  async list(): Promise<WorkerRow[]> {
    return this.#db
      .selectFrom('workers')
      .selectAll()
      .select(silentMs())
      .orderBy('worker_id')
      .execute();
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

  /**
   * Adds a worker, or updates one that has restarted. Refuses, with false, the id of a worker that another machine had not long
   * ago, and notes that it was asked for. An order to drain holds for the same machine as long as the worker has sandboxes.
   */
  async register(worker: RegisterWorkerRequest): Promise<boolean> {
    const facts = {
      url: worker.url,
      certificate: worker.certificate,
      version: worker.version,
      draining: worker.draining ?? false,
      instance_id: worker.instance_id ?? null,
      ...capacityColumns(worker.capacity),
      ...templateColumns(worker.templates),
    };
    const isFree = sql<boolean>`workers.removed_at is not null
      or workers.instance_id is not distinct from excluded.instance_id
      or workers.instance_id is null or excluded.instance_id is null
      or workers.heartbeat_at < ${ago(WORKER_TIMES.unreachableMs / 1000)}`;
    // A restart in place does not carry the order out. Once it has been, the worker may be started again.
    const isStillToDrain = sql<boolean>`workers.drain_requested
      and workers.instance_id is not distinct from excluded.instance_id
      and exists (select from sandboxes
                  where sandboxes.worker_id = workers.worker_id and state <> 'destroyed')`;
    const registered = await this.#db
      .insertInto('workers')
      .values({ worker_id: worker.worker_id, ...facts })
      .onConflict((conflict) =>
        conflict
          .column('worker_id')
          .doUpdateSet({
            ...facts,
            free_memory_mib: null,
            drain_requested: isStillToDrain,
            removed_at: null,
            registered_at: sql`now()`,
            heartbeat_at: sql`now()`,
          })
          .where(isFree),
      )
      .returning('worker_id')
      .execute();
    if (registered.length > 0) return true;
    await this.#db
      .updateTable('workers')
      .set({ contested_at: sql`now()` })
      .where('worker_id', '=', worker.worker_id)
      .execute();
    return false;
  }

  /**
   * Records a complete report. Returns what an operator has ordered, and whether the worker has sandboxes in quarantine.
   * Undefined when the worker is not registered, or another machine is under its id.
   */
  async heartbeat(
    workerId: string,
    report: HeartbeatRequest,
  ): Promise<{ readonly drain: boolean; readonly quarantines: boolean } | undefined> {
    return this.#reported(workerId, report)
      .returning(['drain_requested as drain', hasQuarantined(workerId).as('quarantines')])
      .executeTakeFirst();
  }

  /**
   * Records a short report. Returns what an operator has ordered, and whether there may be other orders for the worker: it
   * has sandboxes in quarantine or to be deleted. Undefined as for {@link heartbeat}, and when the worker has been unreachable,
   * since what it has may be elsewhere since then.
   */
  async renewLease(
    workerId: string,
    report: RenewLeaseRequest,
  ): Promise<{ readonly drain: boolean; readonly has_orders: boolean } | undefined> {
    const isDeleting = sql<boolean>`exists (
      select from sandboxes
      where worker_id = ${workerId} and state <> 'destroyed' and delete_requested_at is not null)`;
    return this.#reported(workerId, report)
      .where(sql<boolean>`heartbeat_at > ${ago(WORKER_TIMES.unreachableMs / 1000)}`)
      .returning([
        'drain_requested as drain',
        sql<boolean>`${hasQuarantined(workerId)} or ${isDeleting}`.as('has_orders'),
      ])
      .executeTakeFirst();
  }

  #reported(workerId: string, report: HeartbeatRequest | RenewLeaseRequest) {
    const { capacity, templates } = report;
    return this.#db
      .updateTable('workers')
      .set({
        ...(capacity === undefined ? {} : capacityColumns(capacity)),
        ...(templates === undefined ? {} : templateColumns(templates)),
        ...freeColumns(report.free),
        draining: report.draining ?? false,
        heartbeat_at: sql`now()`,
      })
      .where('worker_id', '=', workerId)
      .where('removed_at', 'is', null)
      .where(sql<boolean>`coalesce(instance_id = ${report.instance_id ?? null}, true)`);
  }

  /**
   * The workers that are lost after `lostMs` of silence (see {@link isLost}), have live sandboxes in the ledger, and are to be
   * given up; and separately those that an operator has `removed`. While several workers, and more than half of all, have been
   * silent for `unreachableMs`, what they have in common is at fault rather than each of them: those with sandboxes are `held`.
   */
  async findLost(times: { readonly unreachableMs: number; readonly lostMs: number }): Promise<{
    readonly removed: readonly string[];
    readonly lost: readonly string[];
    readonly held: readonly string[];
  }> {
    const { rows } = await sql<LostRow>`
      with known as (
        select worker_id, removed_at is not null as given_up, heartbeat_at,
          ${isLost(times.lostMs)} as is_lost,
          exists (select from sandboxes
                  where sandboxes.worker_id = workers.worker_id and state <> 'destroyed') as holds
        from workers)
      select
        coalesce(array_agg(worker_id order by worker_id) filter (where given_up), '{}') as given_up,
        coalesce(array_agg(worker_id order by worker_id) filter (
          where not given_up and holds and is_lost), '{}') as lost,
        count(*) filter (where not given_up)::int as all_known,
        count(*) filter (
          where not given_up and heartbeat_at < ${ago(times.unreachableMs / 1000)})::int as silent
      from known
      where holds or (not given_up and heartbeat_at > ${ago(RECENT_SECONDS)})`.execute(this.#db);
    const [{ given_up, lost, all_known, silent } = NONE_LOST] = rows;
    const isHeld = silent > 1 && silent * 2 > all_known;
    return { removed: given_up, lost: isHeld ? [] : lost, held: isHeld ? lost : [] };
  }

  /** Removes up to `limit` workers without a heartbeat for this long and without a record of a sandbox. Returns their number. */
  removeSilent(seconds: number, limit: number): Promise<number> {
    const isSilent = sql`heartbeat_at < ${ago(seconds)}
      and not exists (select from sandboxes where sandboxes.worker_id = workers.worker_id)`;
    return removeBatch(this.#db, 'workers', isSilent, limit);
  }
}

function capacityColumns({ vcpu, memory_mib, disk_mib }: Capacity) {
  return { vcpu, memory_mib, disk_mib };
}

/** Of a template that a report repeats, stores the first. */
function templateColumns(reported: readonly WorkerTemplate[]) {
  const templates = new Map<string, WorkerTemplate>();
  for (const each of reported) {
    if (templates.size === MOST_TEMPLATES) break;
    if (templates.has(each.template)) continue;
    const agents = each.agents?.slice(0, MOST_AGENTS);
    templates.set(each.template, agents === undefined ? each : { ...each, agents });
  }
  return { templates: JSON.stringify([...templates.values()], TEMPLATE_FIELDS) };
}

function freeColumns(free: FreeCapacity) {
  return { free_memory_mib: free.memory_mib, free_disk_mib: free.disk_mib };
}

function hasQuarantined(workerId: string) {
  return sql<boolean>`exists (select from quarantined_sandboxes where worker_id = ${workerId})`;
}

/** By the clock of the database, which wrote the time of the heartbeat. */
function silentMs() {
  return sql<number>`(extract(epoch from now() - heartbeat_at) * 1000)::float8`.as('silent_ms');
}

async function load(
  db: Kysely<Schema>,
  ids: readonly string[],
): Promise<(WorkerRow | undefined)[]> {
  const rows = await db
    .selectFrom('workers')
    .selectAll()
    .select(silentMs())
    .where(sql<boolean>`worker_id = any(${[...ids]}::text[])`)
    .execute();
  const byId = new Map(rows.map((row) => [row.worker_id, row]));
  return ids.map((id) => byId.get(id));
}
