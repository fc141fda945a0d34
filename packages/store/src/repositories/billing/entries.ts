import { type Kysely, sql } from 'kysely';
import type { EntryKind, Schema } from '../../schema.ts';

/** A new entry of the ledger. Amounts are in cents. */
export interface NewEntry {
  readonly tenantId: string;
  /** Not zero; negative for deductions. */
  readonly amount: number;
  readonly kind: EntryKind;
  /** What the entry is for. */
  readonly reference: string;
  readonly description: string;
}

/** An entry as its tenant sees it. */
export interface Transaction {
  readonly id: string;
  /** Cents; negative for deductions. */
  readonly amount: number;
  readonly description: string;
  readonly createdAt: Date;
}

/** Adds an entry and its amount to the balance. False, without an effect, when there is one for this reference. */
export async function addEntry(db: Kysely<Schema>, entry: NewEntry): Promise<boolean> {
  const { rows } = await sql`
    insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
    values (${entry.tenantId}, ${entry.amount}, ${entry.kind}, ${entry.reference}, ${entry.description})
    on conflict (kind, reference) do nothing
    returning 1`.execute(db);
  return rows.length === 1;
}

/** Entries of one tenant, newest first. */
export async function listEntries(
  db: Kysely<Schema>,
  tenantId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<Transaction[]> {
  const rows = await db
    .selectFrom('ledger_entries')
    .select(['entry_id', 'amount_cents', 'description', 'created_at'])
    .where('tenant_id', '=', tenantId)
    .orderBy('seq', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map((row) => ({
    id: row.entry_id,
    amount: Number(row.amount_cents),
    description: row.description,
    createdAt: row.created_at,
  }));
}
