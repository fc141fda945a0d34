import type { SandboxPlacement } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import type { SandboxRow, Schema, WorkerRow } from '../../schema.ts';
import { type IdempotencyHold, whileHeld } from '../idempotency.ts';
import {
  chooseWorker,
  type PlacementRefusal,
  type PlacementRules,
  refusalOf,
} from './choose-worker.ts';

/** Another request may reserve a worker's last capacity between the choice and the update. */
const MAX_ATTEMPTS = 5;

/** A sandbox to place. */
export interface PlacementRequest {
  readonly vmId: string;
  readonly tenantId: string;
  readonly placement: SandboxPlacement;
  readonly metadata: Record<string, unknown>;
  readonly persistenceUrl: string | undefined;
  /** The session that the sandbox is for, and its generation. */
  readonly session?: { readonly sessionId: string; readonly generation: number } | undefined;
  /** The idempotency key of the request, which must still hold it. */
  readonly hold?: IdempotencyHold | undefined;
}

/** The row of a sandbox that has been placed, with the address of its worker. */
export type PlacedRow = SandboxRow & { readonly placement: SandboxPlacement } & Pick<
    WorkerRow,
    'url' | 'certificate'
  >;

export type Placement<Refusal = PlacementRefusal> =
  | { readonly placed: PlacedRow }
  | { readonly placed?: never; readonly refusal: Refusal };

/**
 * Inserts a sandbox and reserves its memory on a worker: see {@link chooseWorker}. One statement does both, so that no two
 * requests get the same memory and a crash leaves all or nothing. A worker's memory is nominal: that of its machine times
 * its overcommit factor. Rows are locked in the order tenant, worker, as in every change of counters.
 * Refused as `key_taken_over` when another request has taken over the idempotency key of this one.
 */
export async function reserve(
  db: Kysely<Schema>,
  request: PlacementRequest,
  rules: PlacementRules,
): Promise<Placement<PlacementRefusal | 'key_taken_over'>> {
  const { placement, hold } = request;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { rows } = await sql<PlacedRow>`
      with held as (${whileHeld(hold)}), allowed as (
        select tenant_id from tenants
        where tenant_id = ${request.tenantId} and active_sandboxes < ${rules.sandboxesPerTenant}
          and exists (select from held)
        for no key update
      ), ${chooseWorker(placement, rules, [], sql`exists (select from allowed)`)},
      counted as (
        update tenants set active_sandboxes = active_sandboxes + 1
        from chosen where tenants.tenant_id = ${request.tenantId}
      ), placed as (
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
      returning *)
      select placed.*, chosen.url, chosen.certificate from placed join chosen using (worker_id)`.execute(
      db,
    );
    if (rows[0] !== undefined) return { placed: rows[0] };
    const held = await whileHeld(hold).execute(db);
    if (held.rows.length === 0) return { refusal: 'key_taken_over' };
    const refusal = await refusalOf(db, placement, rules, [], request.tenantId);
    if (refusal !== undefined) return { refusal };
  }
  return { refusal: 'no_capacity' };
}

/**
 * Places a sandbox that its worker refused to start on another worker, with the next generation. Locks the sandbox, then both
 * workers by id.
 * Refused as `superseded` when the sandbox has started or was deleted in the meantime.
 */
export async function placeAgain(
  db: Kysely<Schema>,
  current: PlacedRow,
  rules: PlacementRules,
  excluded: readonly string[],
): Promise<Placement<PlacementRefusal | 'superseded'>> {
  const { placement } = current;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { rows } = await sql<PlacedRow>`
      with allowed as (
        select worker_id, memory_mib from sandboxes
        where vm_id = ${current.vm_id} and generation = ${current.generation}
          and state in ('creating', 'configuring', 'booting')
        for no key update
      ), ${chooseWorker(
        placement,
        rules,
        excluded,
        sql`exists (select from allowed)`,
        sql`select worker_id from allowed`,
      )},
      freed as (
        update workers set reserved_memory_mib = reserved_memory_mib - allowed.memory_mib
        from allowed, chosen where workers.worker_id = allowed.worker_id
      )
      update sandboxes
      set worker_id = chosen.worker_id, memory_mib = chosen.need, state = 'creating',
          generation = generation + 1, revision = 0, placed_at = now()
      from chosen where vm_id = ${current.vm_id} and generation = ${current.generation}
        and state in ('creating', 'configuring', 'booting')
      returning sandboxes.*, chosen.url, chosen.certificate`.execute(db);
    if (rows[0] !== undefined) return { placed: rows[0] };
    const refusal = await refusalOf(db, placement, rules, excluded);
    if (refusal !== undefined) return { refusal };
    if (!(await isUnstarted(db, current))) return { refusal: 'superseded' };
  }
  return { refusal: 'no_capacity' };
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
