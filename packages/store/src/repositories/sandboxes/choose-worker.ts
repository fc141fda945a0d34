import { LIMITS, type SandboxPlacement } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** Memory of a sandbox when neither the request nor the template specifies it. */
const FALLBACK_MEMORY_MIB = 1024;

/** Rules of placement, from configuration. */
export interface PlacementRules {
  /** Workers without a heartbeat for longer than this get no sandboxes. */
  readonly unreachableMs: number;
  readonly sandboxesPerTenant: number;
}

/** The properties of a placement that its worker must fit. */
type PlacementNeed = Pick<SandboxPlacement, 'template' | 'size' | 'agent'>;

export type PlacementRefusal =
  | 'tenant_limit'
  | 'no_workers'
  | 'template_not_available'
  | 'no_capacity';

/** Workers that a placement looks at first: so many that follow each of so many random points. */
const SAMPLE = { points: 2, perPoint: 16 } as const;

/** Unreserved memory of an offer. */
const SPARE = sql`(offer.total_memory_mib - offer.reserved_memory_mib)`;
const FITS = sql`(${SPARE} >= offer.need)`;
/**
 * Whether the worker had no free memory at its last heartbeat. Such workers are chosen last, but not excluded: memory
 * may have become free since, and a worker without memory refuses.
 */
const IS_SHORT = sql`(coalesce(offer.free_memory_mib, 1) <= 0)`;
const HAS_VALID_SIZE = sql`(coalesce(known.vcpu, 0) <= ${sql.lit(LIMITS.vcpuMax)}
  and coalesce(known.memory_mib, 0) <= ${sql.lit(LIMITS.memoryMibMax)}
  and coalesce(known.disk_mib, 0) <= ${sql.lit(LIMITS.diskMibMax)})`;
/** Every worker, instead of a sample. */
const FLEET = sql`workers`;

/**
 * The CTEs `candidate` and `chosen`: choose a worker, and reserve its memory. `left` selects the id of the worker whose memory
 * the statement releases, if any: it is locked too, the two in the order of their ids, so that placements in opposite
 * directions never wait for each other in a circle.
 *
 * Reads a random sample of the fleet, whose size does not depend on that of the fleet; all of it only if nobody in the
 * sample fits. Of two random workers that fit, takes the one whose memory or processors, whichever are scarcer there, are
 * promised to a smaller share. Such a choice spreads sandboxes almost as evenly as the best of all workers would, and
 * concurrent placements do not all take the same one.
 */
export function chooseWorker(
  need: PlacementNeed,
  rules: PlacementRules,
  excluded: readonly string[],
  condition: RawBuilder<unknown>,
  left?: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`
    sampled as materialized (${pairOf(offers(need, rules, excluded, SAMPLED), condition)}),
    pair as (
      select * from sampled
      union all
      (select * from (${pairOf(offers(need, rules, excluded), condition)}) as rest
        where not exists (select from sampled))
    ), candidate as (
      select pair.* from pair cross join lateral (
        select coalesce(sum(coalesce(sandboxes.vcpu, 1)), 0) as vcpu from sandboxes
        where sandboxes.worker_id = pair.worker_id and state <> 'destroyed'
      ) as promised
      order by pair.is_short, greatest(
        (pair.reserved_memory_mib + pair.need)::float8 / pair.total_memory_mib,
        (promised.vcpu + pair.need_vcpu)::float8 / greatest(pair.total_vcpu, 1)), pair.worker_id
      limit 1
    ), ${left === undefined ? sql`` : sql`${lockBoth(left)},`} chosen as (
      update workers set reserved_memory_mib = workers.reserved_memory_mib + candidate.need
      from candidate where workers.worker_id = candidate.worker_id
        and workers.memory_mib - workers.reserved_memory_mib >= candidate.need
        and not workers.draining and not workers.cordoned
        ${left === undefined ? sql`` : sql`and (select count(*) from locked) > 0`}
      returning workers.worker_id, workers.url, workers.certificate,
        candidate.need, candidate.vcpu, candidate.disk_mib
    )`;
}

/** Whoever counts the rows of this CTE has all of them locked. */
function lockBoth(left: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`locked as (
    select worker_id from workers
    where worker_id in (select worker_id from candidate union all ${left})
    order by worker_id for no key update
  )`;
}

/** Two random offers that fit, of workers with free memory if there are such. */
function pairOf(offered: RawBuilder<unknown>, condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select offer.*, ${IS_SHORT} as is_short from ${offered}
    where ready and ${FITS} and ${condition} order by ${IS_SHORT}, random() limit 2`;
}

/** The workers that follow random points of the circle of keys. */
const SAMPLED = sql`(
  select distinct on (found.worker_id) found.*
  from (select random() as at from generate_series(1, ${sql.lit(SAMPLE.points)})) as point
  cross join lateral (
    (select * from workers
      where placement_key >= point.at and not draining and not cordoned and removed_at is null
      order by placement_key limit ${sql.lit(SAMPLE.perPoint)})
    union all
    (select * from workers
      where placement_key < point.at and not draining and not cordoned and removed_at is null
      order by placement_key limit ${sql.lit(SAMPLE.perPoint)})
    limit ${sql.lit(SAMPLE.perPoint)}
  ) as found
)`;

/**
 * One row per worker that takes sandboxes and has the template, with the build of the agent that the placement names. A worker
 * gains nothing by repeating its template, and a template larger than a sandbox may be is none.
 */
function offers(
  need: PlacementNeed,
  rules: PlacementRules,
  excluded: readonly string[],
  source: RawBuilder<unknown> = FLEET,
): RawBuilder<unknown> {
  return sql`(
    select workers.worker_id, workers.memory_mib as total_memory_mib, workers.free_memory_mib,
      workers.reserved_memory_mib, workers.vcpu as total_vcpu, known.ready, known.vcpu, known.disk_mib,
      coalesce(${need.size.vcpu ?? null}::int, known.vcpu, 1) as need_vcpu,
      coalesce(${need.size.memory_mib ?? null}::int, known.memory_mib, ${FALLBACK_MEMORY_MIB}) as need
    from ${source} as workers cross join lateral (
      select * from jsonb_to_recordset(workers.templates)
        as known(template text, ready boolean, vcpu int, memory_mib int, disk_mib int, agents jsonb)
      where known.template = ${need.template} and ${carries(need)} and ${HAS_VALID_SIZE}
      limit 1
    ) as known
    where ${takesSandboxes(rules)} and workers.worker_id <> all(${[...excluded]}::text[])
  ) offer`;
}

function carries({ agent }: PlacementNeed): RawBuilder<unknown> {
  if (agent?.version === undefined) return sql`true`;
  const build = { kind: agent.kind, version: agent.version };
  return sql`coalesce(known.agents @> ${JSON.stringify([build])}::jsonb, false)`;
}

/** Whether a worker takes sandboxes: it can be reached, is not about to go away, and no operator keeps it free. */
function takesSandboxes(rules: PlacementRules): RawBuilder<unknown> {
  return sql`(workers.heartbeat_at > now() - make_interval(secs => ${rules.unreachableMs / 1000})
    and not workers.draining and not workers.cordoned and workers.removed_at is null)`;
}

/** The reason why placement failed. Undefined when it would succeed now. */
export async function refusalOf(
  db: Kysely<Schema>,
  need: PlacementNeed,
  rules: PlacementRules,
  excluded: readonly string[],
  tenantId: string | null = null,
): Promise<PlacementRefusal | undefined> {
  const { rows } = await sql<{
    limited: boolean;
    workers: boolean;
    offered: boolean;
    fitting: boolean;
  }>`
    select
      exists (select from tenants where tenant_id = ${tenantId}
        and active_sandboxes >= ${rules.sandboxesPerTenant}) as limited,
      exists (select from workers where ${takesSandboxes(rules)}) as workers,
      exists (select from ${offers(need, rules, [])} where ready) as offered,
      exists (select from ${offers(need, rules, excluded)} where ready and ${FITS}) as fitting`.execute(
    db,
  );
  const facts = rows[0];
  if (facts?.limited) return 'tenant_limit';
  if (!facts?.workers) return 'no_workers';
  if (!facts.offered) return 'template_not_available';
  return facts.fitting ? undefined : 'no_capacity';
}
