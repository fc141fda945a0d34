import type { Kysely } from 'kysely';
import type { Schema, TenantRow } from '../schema.ts';

/** Accounts: one account is one tenant. */
export class TenantRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The tenant of this address, made now under `tenantId` unless there is one. */
  async findOrCreate(email: string, tenantId: string): Promise<TenantRow> {
    await this.#db
      .insertInto('tenants')
      .values({ tenant_id: tenantId, email })
      .onConflict((conflict) => conflict.column('email').doNothing())
      .execute();
    return this.#db
      .selectFrom('tenants')
      .selectAll()
      .where('email', '=', email)
      .executeTakeFirstOrThrow();
  }

  /** The tenant of this address, if it has one. */
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
