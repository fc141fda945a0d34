import { type Kysely, sql } from 'kysely';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { Schema } from '../../schema.ts';

/** A purchase that begins. */
export interface NewCheckout {
  readonly checkoutId: string;
  readonly tenantId: string;
  readonly provider: 'local' | 'stripe';
  /** Cents. */
  readonly amount: number;
  /** Hash of the token in the link to its page, for a local checkout. */
  readonly pageHash?: Buffer;
  readonly lifetimeSeconds: number;
}

/** A local checkout that can be paid or was paid. */
export interface OpenCheckout {
  readonly checkoutId: string;
  readonly amount: number;
  readonly paid: boolean;
}

const DESCRIPTION = 'Credit purchase';

export async function beginCheckout(db: Kysely<Schema>, checkout: NewCheckout): Promise<void> {
  await sql`
    insert into checkouts (checkout_id, tenant_id, provider, amount_cents, page_hash, expires_at)
    values (${checkout.checkoutId}, ${checkout.tenantId}, ${checkout.provider}, ${checkout.amount},
      ${checkout.pageHash ?? null}, now() + make_interval(secs => ${checkout.lifetimeSeconds}))`.execute(
    db,
  );
}

/** Notes the provider's own id of a checkout. */
export async function noteProviderId(
  db: Kysely<Schema>,
  checkoutId: string,
  providerId: string,
): Promise<void> {
  await db
    .updateTable('checkouts')
    .set({ provider_id: providerId })
    .where('checkout_id', '=', checkoutId)
    .execute();
}

/** The checkout with this link. Undefined when there is none, or it has expired unpaid. */
export async function findCheckout(
  db: Kysely<Schema>,
  pageHash: Buffer,
): Promise<OpenCheckout | undefined> {
  const row = await db
    .selectFrom('checkouts')
    .select(['checkout_id', 'amount_cents', 'paid_at'])
    .where('page_hash', '=', pageHash)
    .where(sql<boolean>`(paid_at is not null or expires_at > now())`)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { checkout_id: checkoutId, amount_cents: amount, paid_at: paidAt } = row;
  return { checkoutId, amount: Number(amount), paid: paidAt !== null };
}

/**
 * Marks a checkout as paid and credits its tenant, once. False when it was paid before, or there is none of this
 * provider and amount.
 */
export async function payCheckout(
  db: Kysely<Schema>,
  { checkoutId, provider, amount }: Pick<NewCheckout, 'checkoutId' | 'provider' | 'amount'>,
): Promise<boolean> {
  const { rows } = await sql`
    with paid as (
      update checkouts set paid_at = now()
      where checkout_id = ${checkoutId} and provider = ${provider} and amount_cents = ${amount}
        and paid_at is null
      returning checkout_id, tenant_id, amount_cents
    )
    insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
    select tenant_id, amount_cents, 'purchase', checkout_id, ${DESCRIPTION} from paid
    on conflict (kind, reference) do nothing
    returning 1`.execute(db);
  return rows.length === 1;
}

/** Removes up to `limit` checkouts that expired unpaid longer ago than this. Returns their number. */
export function removeUnpaidCheckouts(
  db: Kysely<Schema>,
  olderThanSeconds: number,
  limit: number,
): Promise<number> {
  const isOver = sql`paid_at is null and expires_at < ${ago(olderThanSeconds)}`;
  return removeBatch(db, 'checkouts', isOver, limit);
}
