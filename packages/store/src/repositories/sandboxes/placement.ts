import type { SandboxPlacement } from '@svc/contract';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { SandboxRow, Schema } from '../../schema.ts';

/** Memory of a sandbox whose request and template name none. */
const FALLBACK_MEMORY_MIB = 1024;
/** Another request may take a worker's last room between the choice and the update. */
const MOST_ATTEMPTS = 5;

/** Rules of placement, from configuration. */
export interface PlacementRules {
  /** Workers silent for longer are not placed on. */
  readonly unreachableMs: number;
  readonly sandboxesPerTenant: number;
}

/** What is to be placed. */
export interface PlacementRequest {
  readonly vmId: string;
  readonly tenantId: string;
  readonly placement: SandboxPlacement;
  readonly metadata: Record<string, unknown>;
  readonly persistenceUrl: string | undefined;
  /** The session that it is made for, and which start of it. */
  readonly session?: { readonly sessionId: string; readonly generation: number } | undefined;
}

/** The row of a sandbox that has been placed. */
export type PlacedRow = SandboxRow & { readonly placement: SandboxPlacement };

export type PlacementRefusal =
  | 'tenant_limit'
  | 'no_workers'
  | 'template_not_available'
  | 'no_capacity';

export type Placement =
  | { readonly placed: PlacedRow }
  | { readonly placed?: never; readonly refusal: PlacementRefusal };

/** Memory of an offer that is promised to nobody. */
const SPARE = sql`(offer.total_memory_mib - offer.reserved_memory_mib)`;
const FITS = sql`(${SPARE} >= offer.need)`;
/**
 * Whether the worker had nothing free at its last heartbeat: of full or short machines the last
 * resort. No more than that, for room may have been made since; a worker that is short refuses.
 */
const IS_SHORT = sql`(coalesce(offer.free_memory_mib, 1) <= 0)`;

type Need = Pick<SandboxPlacement, 'template' | 'size'>;

/**
 * Reserves a row and the capacity for it on the worker with most to spare: in one statement, so
 * that no two requests get the same room and a crash leaves all of it or nothing. What a worker
 * says it has is nominal: its machine's memory times the overcommit that it allows itself.
 * Rows are locked in the order tenant, worker, as wherever counters change.
 */
export async function reserve(
  db: Kysely<Schema>,
  request: PlacementRequest,
  rules: PlacementRules,
): Promise<Placement> {
  const { placement } = request;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const { rows } = await sql<PlacedRow>`
      with allowed as (
        select tenant_id from tenants
        where tenant_id = ${request.tenantId} and active_sandboxes < ${rules.sandboxesPerTenant}
        for update
      ), ${chooseWorker(placement, rules, [], sql`exists (select from allowed)`)},
      counted as (
        update tenants set active_sandboxes = active_sandboxes + 1
        from chosen where tenants.tenant_id = ${request.tenantId}
      )
      insert into sandboxes (vm_id, tenant_id, worker_id, state, template, vcpu, memory_mib, disk_mib,
        idle_timeout_seconds, max_lifetime_seconds, metadata, persistence_url, agent, session_id,
        session_generation, placement)
      select ${request.vmId}, ${request.tenantId}, chosen.worker_id, 'creating',
        ${placement.template}, coalesce(${placement.size.vcpu ?? null}::int, chosen.vcpu),
        chosen.need, coalesce(${placement.size.disk_mib ?? null}::int, chosen.disk_mib),
        ${placement.idle_timeout_seconds}, ${placement.max_lifetime_seconds},
        ${JSON.stringify(request.metadata)}::json, ${request.persistenceUrl ?? null},
        ${placement.agent?.kind ?? null}, ${request.session?.sessionId ?? null}::uuid,
        ${request.session?.generation ?? null}::int, ${JSON.stringify(placement)}::json
      from chosen
      returning *`.execute(db);
    if (rows[0] !== undefined) return { placed: rows[0] };
    const refusal = await explain(db, placement, rules, [], request.tenantId);
    if (refusal !== undefined) return { refusal };
  }
  return { refusal: 'no_capacity' };
}

/**
 * Places a sandbox that its worker would not start on another one, under the next generation.
 * Refused when it has left `creating`, which is how a deletion in between is seen (`superseded`).
 */
export async function placeAgain(
  db: Kysely<Schema>,
  current: PlacedRow,
  rules: PlacementRules,
  excluded: readonly string[],
): Promise<Placement | { readonly placed?: never; readonly refusal: 'superseded' }> {
  const { placement } = current;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const { rows } = await sql<PlacedRow>`
      with allowed as (
        select worker_id, memory_mib from sandboxes
        where vm_id = ${current.vm_id} and generation = ${current.generation}
          and state in ('creating', 'configuring', 'booting')
        for update
      ), ${chooseWorker(placement, rules, excluded, sql`exists (select from allowed)`)},
      freed as (
        update workers set reserved_memory_mib = reserved_memory_mib - allowed.memory_mib
        from allowed, chosen where workers.worker_id = allowed.worker_id
      )
      update sandboxes
      set worker_id = chosen.worker_id, memory_mib = chosen.need, state = 'creating',
          generation = generation + 1, revision = 0, placed_at = now()
      from chosen where vm_id = ${current.vm_id} and generation = ${current.generation}
        and state in ('creating', 'configuring', 'booting')
      returning sandboxes.*`.execute(db);
    if (rows[0] !== undefined) return { placed: rows[0] };
    const refusal = await explain(db, placement, rules, excluded);
    if (refusal !== undefined) return { refusal };
    if (!(await isUnstarted(db, current))) return { refusal: 'superseded' };
  }
  return { refusal: 'no_capacity' };
}

/** The CTEs `candidate` and `chosen`: the roomiest worker that fits, its memory reserved. */
function chooseWorker(
  need: Need,
  rules: PlacementRules,
  excluded: readonly string[],
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`
    candidate as (
      select offer.* from ${offers(need, rules, excluded)}
      where ready and ${FITS} and ${condition}
      order by ${IS_SHORT}, ${SPARE} desc, offer.worker_id limit 1
    ), chosen as (
      update workers set reserved_memory_mib = workers.reserved_memory_mib + candidate.need
      from candidate where workers.worker_id = candidate.worker_id
        and workers.memory_mib - workers.reserved_memory_mib >= candidate.need
      returning workers.worker_id, candidate.need, candidate.vcpu, candidate.disk_mib
    )`;
}

/** One row for each reachable worker that knows the template. */
function offers(
  need: Need,
  rules: PlacementRules,
  excluded: readonly string[],
): RawBuilder<unknown> {
  return sql`(
    select workers.worker_id, workers.memory_mib as total_memory_mib, workers.free_memory_mib,
      workers.reserved_memory_mib, known.ready, known.vcpu, known.disk_mib,
      coalesce(${need.size.memory_mib ?? null}::int, known.memory_mib, ${FALLBACK_MEMORY_MIB}) as need
    from workers, jsonb_to_recordset(workers.templates)
      as known(template text, ready boolean, vcpu int, memory_mib int, disk_mib int)
    where ${reachable(rules)} and known.template = ${need.template}
      and workers.worker_id <> all(${[...excluded]}::text[])
  ) offer`;
}

function reachable(rules: PlacementRules): RawBuilder<unknown> {
  return sql`(workers.heartbeat_at > now() - make_interval(secs => ${rules.unreachableMs / 1000}))`;
}

/** Why nothing was placed; undefined when something would fit now. */
async function explain(
  db: Kysely<Schema>,
  need: Need,
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
      exists (select from workers where ${reachable(rules)}) as workers,
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

async function isUnstarted(db: Kysely<Schema>, sandbox: SandboxRow): Promise<boolean> {
  const row = await db
    .selectFrom('sandboxes')
    .select('vm_id')
    .where('vm_id', '=', sandbox.vm_id)
    .where('generation', '=', sandbox.generation)
    .where('state', 'in', ['creating', 'configuring', 'booting'])
    .executeTakeFirst();
  return row !== undefined;
}
