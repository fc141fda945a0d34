import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema, TenantRow } from '../schema.ts';
import { GRANT_DESCRIPTION } from './billing/grants.ts';

/**
 * Makes whatever counts the rows of a tenant before it adds one wait for its turn. A condition alone would let through
 * every caller that cannot see the uncommitted rows of the others.
 */
export async function lockTenant(
  transaction: Transaction<Schema>,
  tenantId: string,
): Promise<void> {
  await sql`select from tenants where tenant_id = ${tenantId} for no key update`.execute(
    transaction,
  );
}

/** Tenants. Each account is one tenant. */
export class TenantRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /**
   * The tenant with this e-mail address. Creates it with the id `tenantId` unless it exists, with its billing account
   * and `grantCents` of credit.
   */
  async findOrCreate(email: string, tenantId: string, grantCents = 0): Promise<TenantRow> {
    await sql`
      with created as (
        insert into tenants (tenant_id, email) values (${tenantId}, ${email})
        on conflict (email) do nothing returning tenant_id
      ), opened as (
        insert into billing_accounts (tenant_id) select tenant_id from created
      )
      insert into ledger_entries (tenant_id, amount_cents, kind, reference, description)
      select tenant_id, ${grantCents}::bigint, 'grant', tenant_id, ${GRANT_DESCRIPTION}
      from created where ${grantCents}::bigint > 0`.execute(this.#db);
    return this.#db
      .selectFrom('tenants')
      .selectAll()
      .where('email', '=', email)
      .executeTakeFirstOrThrow();
  }

  /** The tenant with this e-mail address. Undefined when there is none. */
  async findByEmail(email: string): Promise<TenantRow | undefined> {
    return this.#db.selectFrom('tenants').selectAll().where('email', '=', email).executeTakeFirst();
  }

  async find(tenantId: string): Promise<TenantRow | undefined> {
    return this.#db
      .selectFrom('tenants')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst();
  }
}
