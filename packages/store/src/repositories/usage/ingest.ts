import {
  USAGE_COUNTERS,
  type UsageCounters,
  type UsageRefusal,
  type UsageSample,
  WORKER_TIMES,
} from '@svc/contract';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../schema.ts';
import { countersOf } from './counters.ts';
import { judge, type MeteredSandbox } from './judge.ts';
import { NewRecords } from './new-records.ts';
import { costOf, type PriceTable } from './price.ts';

/** What became of a sample. `known`: it is not newer than the last accepted one of its sandbox. */
export type SampleVerdict = 'accepted' | 'known' | UsageRefusal;

/**
 * Stores what the sandboxes of a worker have used: records, counters and daily sums in one transaction. Returns what
 * became of each sample, none of which depends on those of other sandboxes. Samples that are not newer than the last
 * accepted one of their sandbox change nothing, so reports may be repeated and reordered. Control planes that store
 * samples of one sandbox at the same time take turns. A sample that counts nothing new makes no record.
 */
export async function ingest(
  db: Kysely<Schema>,
  workerId: string,
  samples: readonly UsageSample[],
  prices: PriceTable,
): Promise<SampleVerdict[]> {
  if (samples.length === 0) return [];
  return db.transaction().execute(async (transaction) => {
    const meters = await lockMeters(transaction, workerId, samples);
    const days = new DaySums();
    const records = new NewRecords();
    const verdicts = new Map<UsageSample, SampleVerdict>();
    for (const sample of samples.toSorted((a, b) => a.seq - b.seq)) {
      verdicts.set(sample, take(sample, meters, prices, records, days));
    }
    await records.insert(transaction);
    await saveMeters(
      transaction,
      [...meters.values()].filter(({ changed }) => changed),
    );
    await days.add(transaction);
    return samples.map((sample) => verdicts.get(sample) ?? 'invalid');
  });
}

/** A sandbox with its meter, which this transaction has locked. */
interface LockedMeter extends MeteredSandbox, UsageCounters {
  readonly vm_id: string;
  readonly generation: number;
  readonly tenant_id: string;
  readonly memory_mib: number;
  readonly begins_session: boolean;
  readonly now: Date;
  readonly placed_at: Date;
  readonly ended_at: Date | null;
  seq: number;
  cost: bigint;
  cost_rest: number;
  used_at: Date | null;
  changed: boolean;
}

type MeterRow = Pick<
  LockedMeter,
  | 'vm_id'
  | 'generation'
  | 'tenant_id'
  | 'memory_mib'
  | 'vcpu'
  | 'begins_session'
  | 'now'
  | 'placed_at'
  | 'ended_at'
  | 'used_at'
  | 'cost_rest'
> & { readonly cost_microusd: string; readonly seq: string } & Record<keyof UsageCounters, string>;

/** Finds those sandboxes that are or were on this worker, and locks their meters. */
async function lockMeters(
  transaction: Transaction<Schema>,
  workerId: string,
  named: readonly UsageSample[],
): Promise<Map<string, LockedMeter>> {
  const ids = named.map((sample) => sample.vm_id);
  const generations = named.map((sample) => sample.generation);
  const wanted = sql`(select distinct * from unnest(${ids}::text[], ${generations}::int[]))
    as wanted(vm_id, generation)`;
  // All in the order of their keys, so that reports with the same sandboxes never wait for each other in a circle.
  await sql`
    insert into usage_meters (vm_id, generation, tenant_id)
    select vm_id, generation, tenant_id from sandboxes join ${wanted} using (vm_id, generation)
    where worker_id = ${workerId}
    order by vm_id, generation
    for key share of sandboxes
    on conflict do nothing`.execute(transaction);
  const { rows } = await sql<MeterRow>`
    select meter.*, sandboxes.memory_mib, sandboxes.vcpu, sandboxes.placed_at,
      sandboxes.ended_at, now() as now,
      coalesce(sandboxes.session_generation = 1, false) as begins_session
    from usage_meters meter join ${wanted} using (vm_id, generation) join sandboxes using (vm_id)
    where sandboxes.worker_id = ${workerId} and sandboxes.generation = meter.generation
    order by vm_id, generation
    for no key update of meter`.execute(transaction);
  return new Map(
    rows.map((row) => [
      keyOf(row),
      {
        ...row,
        ...countersOf((name) => Number(row[name])),
        seq: Number(row.seq),
        cost: BigInt(row.cost_microusd),
        placed_ms: lastMoment(row) - row.placed_at.getTime(),
        changed: false,
      },
    ]),
  );
}

/** A worker that was cut off runs a VM for some time after its sandbox has ended. */
function lastMoment({ now, ended_at }: Pick<MeterRow, 'now' | 'ended_at'>): number {
  if (ended_at === null) return now.getTime();
  return Math.min(now.getTime(), ended_at.getTime() + WORKER_TIMES.sandboxLeaseMs);
}

/** Judges a sample, and adds it to its meter, the records and the daily sums if it is accepted and counts anything. */
function take(
  reported: UsageSample,
  meters: Map<string, LockedMeter>,
  prices: PriceTable,
  records: NewRecords,
  days: DaySums,
): SampleVerdict {
  const meter = meters.get(keyOf(reported));
  if (meter === undefined) return 'unknown_sandbox';
  const sample = { ...reported, wall_ms: wallMsUntilEnd(reported, meter) };
  const verdict = judge(sample, meter, meter);
  if (verdict !== 'accepted') return verdict;
  const isFirst = meter.seq === 0;
  const used = countersOf((name) => sample[name] - meter[name]);
  // The first one counts the sandbox.
  if (!isFirst && USAGE_COUNTERS.every((name) => used[name] === 0)) {
    Object.assign(meter, { seq: sample.seq, changed: true });
    return 'accepted';
  }
  const cost = costOf(used, meter.memory_mib, prices, meter.cost_rest);
  // The database's clock less the age of the sample, within what the sandbox allows.
  const earliest = meter.used_at ?? meter.placed_at;
  const used_at = new Date(Math.max(earliest.getTime(), meter.now.getTime() - sample.age_ms));
  const { vm_id, generation, tenant_id } = meter;
  const { microusd } = cost;
  records.add({ vm_id, generation, tenant_id, seq: sample.seq, ...used, cost: microusd, used_at });
  days.note(tenant_id, used_at, used, microusd, {
    sandboxes: isFirst ? 1 : 0,
    sessions: isFirst && meter.begins_session ? 1 : 0,
  });
  Object.assign(meter, {
    ...countersOf((name) => sample[name]),
    seq: sample.seq,
    cost: meter.cost + microusd,
    cost_rest: cost.rest,
    used_at,
    changed: true,
  });
  return 'accepted';
}

/** A worker that was cut off keeps a VM, which stands still, for longer than the sandbox has lasted. */
function wallMsUntilEnd({ wall_ms }: UsageSample, meter: LockedMeter): number {
  const { ended_at, placed_at } = meter;
  if (ended_at === null) return wall_ms;
  return Math.min(wall_ms, Math.max(meter.wall_ms, ended_at.getTime() - placed_at.getTime()));
}

async function saveMeters(
  transaction: Transaction<Schema>,
  meters: readonly LockedMeter[],
): Promise<void> {
  if (meters.length === 0) return;
  await transaction
    .insertInto('usage_meters')
    .values(
      meters.map((meter) => ({
        vm_id: meter.vm_id,
        generation: meter.generation,
        tenant_id: meter.tenant_id,
        seq: meter.seq,
        ...countersOf((name) => meter[name]),
        cost_microusd: String(meter.cost),
        cost_rest: meter.cost_rest,
        used_at: meter.used_at,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['vm_id', 'generation']).doUpdateSet((eb) => ({
        seq: eb.ref('excluded.seq'),
        ...countersOf((name) => eb.ref(`excluded.${name}`)),
        cost_microusd: eb.ref('excluded.cost_microusd'),
        cost_rest: eb.ref('excluded.cost_rest'),
        used_at: eb.ref('excluded.used_at'),
        is_folded: false,
      })),
    )
    .execute();
}

interface DaySum {
  readonly tenant_id: string;
  readonly day: string;
  readonly counters: UsageCounters;
  readonly cost: bigint;
  readonly sandboxes: number;
  readonly sessions: number;
}

/** The sums per tenant and UTC day of one report. */
class DaySums {
  readonly #sums = new Map<string, DaySum>();

  note(
    tenant_id: string,
    usedAt: Date,
    used: UsageCounters,
    cost: bigint,
    begun: { readonly sandboxes: number; readonly sessions: number },
  ): void {
    const day = usedAt.toISOString().slice(0, 10);
    const key = `${tenant_id} ${day}`;
    const sum = this.#sums.get(key);
    this.#sums.set(key, {
      tenant_id,
      day,
      counters: countersOf((name) => used[name] + (sum?.counters[name] ?? 0)),
      cost: cost + (sum?.cost ?? 0n),
      sandboxes: begun.sandboxes + (sum?.sandboxes ?? 0),
      sessions: begun.sessions + (sum?.sessions ?? 0),
    });
  }

  /** Adds the sums to the table, in the order of its key: other reports may have the same tenants. */
  async add(transaction: Transaction<Schema>): Promise<void> {
    if (this.#sums.size === 0) return;
    const sums = [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
    await transaction
      .insertInto('usage_days')
      .values(
        sums.map(({ counters, cost, ...sum }) => ({
          ...sum,
          ...counters,
          cost_microusd: String(cost),
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['tenant_id', 'day']).doUpdateSet({
          ...countersOf((name) => plus<number>(name)),
          cost_microusd: plus<string>('cost_microusd'),
          sandboxes: plus<number>('sandboxes'),
          sessions: plus<number>('sessions'),
        }),
      )
      .execute();
  }
}

/** The stored value of a column plus the inserted one. */
function plus<T>(column: string) {
  return sql<T>`${sql.ref(`usage_days.${column}`)} + ${sql.ref(`excluded.${column}`)}`;
}

function keyOf({ vm_id, generation }: { readonly vm_id: string; readonly generation: number }) {
  return `${vm_id} ${generation}`;
}
