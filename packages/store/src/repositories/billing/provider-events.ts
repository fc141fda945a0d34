import { type Kysely, sql, type Transaction } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';
import { payCheckout } from './checkouts.ts';
import { completeTopup, failTopup } from './topups.ts';

/** What an event of the payment provider says about this service's payments. Amounts are in cents. */
export type PaymentFact =
  | { readonly kind: 'purchase_paid'; readonly checkoutId: string; readonly amount: number }
  | {
      readonly kind: 'method_saved';
      readonly customer: string;
      readonly paymentMethod: string;
      /** By the provider's clock. */
      readonly savedAt: Date;
    }
  | { readonly kind: 'topup_paid'; readonly topupId: string; readonly amount: number }
  | {
      readonly kind: 'topup_failed';
      readonly topupId: string;
      readonly failure: string;
      readonly maxFailures: number;
    };

export interface ProviderEvent {
  readonly eventId: string;
  readonly type: string;
  readonly facts: readonly PaymentFact[];
}

/** `unmatched`: it reports money for which there is no open payment of this amount. */
export type EventOutcome = 'applied' | 'repeated' | 'unmatched';

/** Applies an event in one transaction, once, whatever the order of events is. */
export async function applyEvent(db: Kysely<Schema>, event: ProviderEvent): Promise<EventOutcome> {
  return db.transaction().execute(async (transaction) => {
    const { rows } = await sql`
      insert into provider_events (event_id, type) values (${event.eventId}, ${event.type})
      on conflict (event_id) do nothing returning 1`.execute(transaction);
    if (rows.length === 0) return 'repeated';
    let outcome: EventOutcome = 'applied';
    for (const fact of event.facts) {
      if (!(await applyFact(transaction, event.eventId, fact))) outcome = 'unmatched';
    }
    return outcome;
  });
}

async function applyFact(
  db: Transaction<Schema>,
  eventId: string,
  fact: PaymentFact,
): Promise<boolean> {
  switch (fact.kind) {
    case 'purchase_paid': {
      const { checkoutId, amount } = fact;
      await payCheckout(db, { checkoutId, provider: 'stripe', amount });
      return noteMoney(db, eventId, 'purchase', checkoutId, amount);
    }
    case 'topup_paid': {
      await completeTopup(db, fact);
      return noteMoney(db, eventId, 'topup', fact.topupId, fact.amount);
    }
    case 'topup_failed': {
      await failTopup(db, { ...fact, state: 'failed' });
      return true;
    }
    case 'method_saved': {
      await sql`
        update billing_accounts
        set payment_method = ${fact.paymentMethod}, payment_method_at = ${fact.savedAt}
        where customer = ${fact.customer}
          and (payment_method_at is null or payment_method_at <= ${fact.savedAt})`.execute(db);
      return true;
    }
  }
}

/** Notes what the event has paid. False when no entry of this amount exists for it. */
async function noteMoney(
  db: Transaction<Schema>,
  eventId: string,
  kind: 'purchase' | 'topup',
  reference: string,
  amount: number,
): Promise<boolean> {
  const { rows } = await sql`
    update provider_events set kind = ${kind}, reference = ${reference}
    where event_id = ${eventId} and exists (select from ledger_entries
      where ledger_entries.kind = ${kind} and ledger_entries.reference = ${reference}
        and amount_cents = ${amount})
    returning 1`.execute(db);
  return rows.length === 1;
}

/** Removes up to `limit` events that arrived longer ago than this; their entries stay. Returns their number. */
export function removeOldEvents(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  return removeBatch(db, 'provider_events', sql`received_at < ${ago(olderThanSeconds)}`, limit);
}

/** The account's customer at the provider. Keeps the first one that is noted, and returns it. */
export async function noteCustomer(
  db: Kysely<Schema>,
  tenantId: string,
  customer: string,
): Promise<string> {
  const { rows } = await sql<{ customer: string }>`
    insert into billing_accounts (tenant_id, customer) values (${tenantId}, ${customer})
    on conflict (tenant_id) do update
      set customer = coalesce(billing_accounts.customer, excluded.customer)
    returning customer`.execute(db);
  return rows[0]?.customer ?? customer;
}

/** The account's customer at the provider. */
export async function findCustomer(
  db: Kysely<Schema>,
  tenantId: string,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('billing_accounts')
    .select('customer')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst();
  return row?.customer ?? undefined;
}
