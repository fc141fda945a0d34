import { type Kysely, sql } from 'kysely';
import type { Schema, TenantKeyRow } from '../schema.ts';
import { isCurrentMasterKey } from './master-keys.ts';
import type { MasterKeyChanged, Rewrap } from './secret-bundles.ts';

/** A tenant's key, wrapped by a master key. */
export interface NewTenantKey {
  readonly tenantId: string;
  readonly wrappedKey: Buffer;
  readonly masterKeyId: string;
}

/** The wrapped keys of tenants, one each, which never change. This code cannot open them. */
export class TenantKeyRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  async find(tenantId: string): Promise<TenantKeyRow | undefined> {
    return this.#db
      .selectFrom('tenant_keys')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst();
  }

  /** Stores the key of a tenant that has none. Returns the tenant's key, which another call may have stored. */
  async insert(key: NewTenantKey): Promise<TenantKeyRow | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, key.masterKeyId))) return 'master_key_changed';
      await transaction
        .insertInto('tenant_keys')
        .values({
          tenant_id: key.tenantId,
          wrapped_key: key.wrappedKey,
          master_key_id: key.masterKeyId,
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
      return transaction
        .selectFrom('tenant_keys')
        .selectAll()
        .where('tenant_id', '=', key.tenantId)
        .executeTakeFirstOrThrow();
    });
  }

  /** The number of keys, and how many are wrapped by other master keys. */
  async countWrapped(masterKeyId: string): Promise<{ total: number; others: number }> {
    const { rows } = await sql<{ total: number; others: number }>`
      select count(*)::int as total,
        (count(*) filter (where master_key_id <> ${masterKeyId}))::int as others
      from tenant_keys`.execute(this.#db);
    return rows[0] ?? { total: 0, others: 0 };
  }

  /** Rewraps up to `limit` keys in one transaction and returns their number. */
  async rewrap(masterKeyId: string, limit: number, rewrap: Rewrap<TenantKeyRow>): Promise<number> {
    return this.#db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('tenant_keys')
        .selectAll()
        .where('master_key_id', '<>', masterKeyId)
        .orderBy('tenant_id')
        .limit(limit)
        .forNoKeyUpdate()
        .execute();
      for (const row of rows) {
        await transaction
          .updateTable('tenant_keys')
          .set({ wrapped_key: rewrap(row), master_key_id: masterKeyId })
          .where('tenant_id', '=', row.tenant_id)
          .execute();
      }
      return rows.length;
    });
  }
}
