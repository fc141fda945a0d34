import type { Kysely } from 'kysely';
import type { Schema, TenantRow } from '../schema.ts';

/** Tenants. Each account is one tenant. */
export class TenantRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** The tenant with this e-mail address. Creates it with the id `tenantId` unless it exists. */
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
