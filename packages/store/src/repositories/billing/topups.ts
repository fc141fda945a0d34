import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../schema.ts';

/** A charge of a saved payment method, claimed for sending. */
export interface ClaimedTopup {
  readonly topup_id: string;
  readonly tenant_id: string;
  readonly amount: number;
  readonly customer: string;
  readonly payment_method: string;
  /** The number of attempts to send it, including the one that begins now. */
  readonly attempts: number;
}

export interface TopupRules {
  /** Shortest time between two top-ups of a tenant. */
  readonly intervalSeconds: number;
  /** A smaller amount is not charged. */
  readonly minCents: number;
}

const DESCRIPTION = 'Automatic top-up';

/**
 * Begins a top-up for each account whose balance is below its threshold and that has a payment method. Returns their
 * number. The update of the account decides races: a second control plane sees the time that the first one has set.
 */
export async function beginTopups(
  db: Kysely<Schema>,
  { intervalSeconds, minCents }: TopupRules,
): Promise<number> {
  const { rows } = await sql`
    with due as (
      update billing_accounts set last_topup_at = now()
      where auto_topup and balance_cents < threshold_cents and topup_cents >= ${minCents}
        and customer is not null and payment_method is not null
        and (last_topup_at is null
          or last_topup_at <= now() - make_interval(secs => ${intervalSeconds}))
        and not exists (select from topups
          where topups.tenant_id = billing_accounts.tenant_id and state = 'pending')
      returning tenant_id, topup_cents, customer, payment_method
    )
    insert into topups (topup_id, tenant_id, amount_cents, customer, payment_method)
    select gen_random_uuid()::text, tenant_id, topup_cents, customer, payment_method from due
    on conflict (tenant_id) where state = 'pending' do nothing
    returning 1`.execute(db);
  return rows.length;
}

/**
 * Claims up to `limit` pending top-ups that are due. Nobody else sends them for `seconds`. Ends, without a failure of the
 * account, those that its settings, balance and payment method no longer ask for. An earlier attempt may have charged: its
 * event credits it.
 */
export async function claimTopups(
  db: Kysely<Schema>,
  limit: number,
  seconds: number,
): Promise<ClaimedTopup[]> {
  const { rows } = await sql<ClaimedTopup>`
    with due as (
      select topup_id, auto_topup and balance_cents < threshold_cents
        and topup_cents = amount_cents and billing_accounts.payment_method = topups.payment_method
        as is_wanted
      from topups join billing_accounts using (tenant_id)
      where state = 'pending' and due_at <= now()
      order by due_at limit ${limit} for no key update of topups skip locked
    ), withdrawn as (
      update topups set state = 'unknown', failure = 'withdrawn', ended_at = now()
      from due where topups.topup_id = due.topup_id and is_wanted is not true
    )
    update topups set attempts = attempts + 1, due_at = now() + make_interval(secs => ${seconds})
    from due where topups.topup_id = due.topup_id and is_wanted
    returning topups.topup_id, tenant_id, amount_cents::int as amount, customer, payment_method,
      attempts`.execute(db);
  return rows;
}

/**
 * Records a charge that succeeded and credits its tenant, once. False when that was done before, or there is no top-up
 * of this amount. It does not matter what the top-up counted as until now: the money has arrived.
 */
export async function completeTopup(
  db: Kysely<Schema>,
  { topupId, amount }: { readonly topupId: string; readonly amount: number },
): Promise<boolean> {
  const { rows } = await sql`
    with done as (
      update topups set state = 'succeeded', failure = null, ended_at = now()
      where topup_id = ${topupId} and amount_cents = ${amount} and state <> 'succeeded'
      returning topup_id, tenant_id, amount_cents
    ), cleared as (
      update billing_accounts set topup_failures = 0
      from done where billing_accounts.tenant_id = done.tenant_id
    )
    insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
    select tenant_id, amount_cents, 'topup', topup_id, ${DESCRIPTION} from done
    on conflict (kind, reference) do nothing
    returning 1`.execute(db);
  return rows.length === 1;
}

/** The end of a top-up without money. */
export interface TopupFailure {
  readonly topupId: string;
  readonly state: 'failed' | 'unknown';
  /** The provider's code of the failure. */
  readonly failure: string;
  /** So many failures in a row disable the tenant's automatic top-ups. */
  readonly maxFailures: number;
}

/** Ends a pending top-up without an entry. Returns whether it was pending, and whether top-ups are now disabled. */
export async function failTopup(
  db: Kysely<Schema>,
  { topupId, state, failure, maxFailures }: TopupFailure,
): Promise<{ readonly ended: boolean; readonly disabled: boolean }> {
  const { rows } = await sql<{ disabled: boolean }>`
    with gone as (
      update topups set state = ${state}, failure = ${failure}, ended_at = now()
      where topup_id = ${topupId} and state = 'pending' returning tenant_id
    )
    update billing_accounts set topup_failures = topup_failures + 1,
      auto_topup = auto_topup and topup_failures + 1 < ${maxFailures}
    from gone where billing_accounts.tenant_id = gone.tenant_id
    returning not auto_topup as disabled`.execute(db);
  return { ended: rows.length === 1, disabled: rows[0]?.disabled ?? false };
}

/** Gives a claimed top-up back, due again in `seconds`. */
export async function postponeTopup(
  db: Kysely<Schema>,
  topupId: string,
  seconds: number,
): Promise<void> {
  await sql`
    update topups set due_at = now() + make_interval(secs => ${seconds})
    where topup_id = ${topupId} and state = 'pending'`.execute(db);
}

/** The pending top-ups that began longer ago than this. */
export async function findStaleTopups(
  db: Kysely<Schema>,
  olderThanSeconds: number,
): Promise<string[]> {
  const { rows } = await sql<{ topup_id: string }>`
    select topup_id from topups where state = 'pending'
      and created_at < now() - make_interval(secs => ${olderThanSeconds})`.execute(db);
  return rows.map((row) => row.topup_id);
}
