import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** A sandbox of an account without credit, claimed by one control plane. */
export interface CreditNotice {
  readonly vm_id: string;
  readonly generation: number;
  readonly worker_id: string;
  /** The number of attempts to tell it, including the one that begins now; does not count while it waits for its end. */
  readonly attempts: number;
}

const CLAIMED = sql`notices.vm_id, sandboxes.generation, worker_id, attempts`;

/**
 * Adds a notice for each live sandbox of an account without credit, and removes those of accounts with credit: all in the order
 * of their ids, so that control planes which do so at once never wait for each other in a circle.
 */
export async function updateNotices(db: Kysely<Schema>): Promise<void> {
  await sql`
    with over as (
      select credit_notices.vm_id from credit_notices join sandboxes using (vm_id)
        join billing_accounts using (tenant_id)
      where state = 'destroyed' or balance_cents > 0
      order by credit_notices.vm_id for update of credit_notices)
    delete from credit_notices using over where credit_notices.vm_id = over.vm_id`.execute(db);
  await sql`
    insert into credit_notices (vm_id)
    select vm_id from billing_accounts join sandboxes using (tenant_id)
    where balance_cents <= 0 and state <> 'destroyed'
    order by vm_id
    on conflict (vm_id) do nothing`.execute(db);
}

/** Claims up to `limit` sandboxes that were not told yet. Nobody else gets them for `seconds`. */
export function claimUntold(
  db: Kysely<Schema>,
  limit: number,
  seconds: number,
): Promise<CreditNotice[]> {
  return claim(db, sql`credit_notices.ends_at is null`, limit, seconds);
}

/** Claims up to `limit` sandboxes whose grace period is over. Nobody else gets them for `seconds`. */
export function claimOverdue(
  db: Kysely<Schema>,
  limit: number,
  seconds: number,
): Promise<CreditNotice[]> {
  return claim(db, sql`credit_notices.ends_at <= now()`, limit, seconds);
}

async function claim(
  db: Kysely<Schema>,
  condition: ReturnType<typeof sql>,
  limit: number,
  seconds: number,
): Promise<CreditNotice[]> {
  const { rows } = await sql<CreditNotice>`
    with due as (
      select credit_notices.vm_id from credit_notices join sandboxes using (vm_id)
        join billing_accounts using (tenant_id)
      where ${condition} and due_at <= now() and state <> 'destroyed' and balance_cents <= 0
      order by due_at limit ${limit} for no key update of credit_notices skip locked
    )
    update credit_notices notices
    set attempts = attempts + 1, due_at = now() + make_interval(secs => ${seconds})
    from due, sandboxes where notices.vm_id = due.vm_id and sandboxes.vm_id = due.vm_id
    returning ${CLAIMED}`.execute(db);
  return rows;
}

/** Records that a sandbox was told. It ends in `graceSeconds`. */
export async function noteTold(
  db: Kysely<Schema>,
  vmId: string,
  graceSeconds: number,
): Promise<void> {
  await sql`
    update credit_notices set due_at = now(),
      ends_at = now() + make_interval(secs => ${graceSeconds})
    where vm_id = ${vmId} and ends_at is null`.execute(db);
}
