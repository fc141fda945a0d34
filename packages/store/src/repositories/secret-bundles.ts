import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema, SecretBundleRow } from '../schema.ts';
import { isCurrentMasterKey } from './master-keys.ts';

/** The values of a bundle as they are stored: sealed by a data key that is wrapped by a master key. */
export interface SealedBundle {
  readonly keyNames: readonly string[];
  readonly sealedValues: Buffer;
  readonly wrappedKey: Buffer;
  readonly masterKeyId: string;
}

export interface NewBundle extends SealedBundle {
  readonly tenantId: string;
  readonly name: string;
}

/** The master key is no longer the current one: wrap again with the one that is. */
export type MasterKeyChanged = 'master_key_changed';

/** Wraps a data key anew; gets the row and gives its new wrapped key. */
export type Rewrap<Row> = (row: Row) => Buffer;

export type WrappedKeyRow = Pick<
  SecretBundleRow,
  'tenant_id' | 'name' | 'wrapped_key' | 'master_key_id'
>;

/** Secret bundles. Nothing here can open one. */
export class SecretBundleRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Adds a bundle unless the name is taken or the tenant has its share, however many try at once. */
  async insert(
    bundle: NewBundle,
    mostPerTenant: number,
  ): Promise<SecretBundleRow | 'exists' | 'quota_exceeded' | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, bundle.masterKeyId))) return 'master_key_changed';
      const names = await lockNames(transaction, bundle.tenantId);
      if (names.includes(bundle.name)) return 'exists';
      if (names.length >= mostPerTenant) return 'quota_exceeded';
      return transaction
        .insertInto('secret_bundles')
        .values({ tenant_id: bundle.tenantId, name: bundle.name, ...columnsOf(bundle) })
        .returningAll()
        .executeTakeFirstOrThrow();
    });
  }

  /** Replaces all values of a bundle; undefined when there is none of this name. */
  async replace(bundle: NewBundle): Promise<SecretBundleRow | undefined | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, bundle.masterKeyId))) return 'master_key_changed';
      return transaction
        .updateTable('secret_bundles')
        .set((eb) => ({
          ...columnsOf(bundle),
          version: eb('version', '+', 1),
          last_rotated_at: sql<Date>`now()`,
        }))
        .where('tenant_id', '=', bundle.tenantId)
        .where('name', '=', bundle.name)
        .returningAll()
        .executeTakeFirst();
    });
  }

  async list(tenantId: string): Promise<Omit<SecretBundleRow, 'sealed_values' | 'wrapped_key'>[]> {
    return this.#db
      .selectFrom('secret_bundles')
      .select([
        'tenant_id',
        'name',
        'key_names',
        'master_key_id',
        'version',
        'created_at',
        'last_rotated_at',
      ])
      .where('tenant_id', '=', tenantId)
      .orderBy('name')
      .execute();
  }

  /** What may be shown of a bundle. */
  async describe(
    tenantId: string,
    name: string,
  ): Promise<
    Pick<SecretBundleRow, 'name' | 'key_names' | 'created_at' | 'last_rotated_at'> | undefined
  > {
    return this.#db
      .selectFrom('secret_bundles')
      .select(['name', 'key_names', 'created_at', 'last_rotated_at'])
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .executeTakeFirst();
  }

  /** How often each of these bundles has been written, by name; names without a bundle are left out. */
  async versions(tenantId: string, names: readonly string[]): Promise<Map<string, number>> {
    if (names.length === 0) return new Map();
    const rows = await this.#db
      .selectFrom('secret_bundles')
      .select(['name', 'version'])
      .where('tenant_id', '=', tenantId)
      .where('name', 'in', names)
      .execute();
    return new Map(rows.map((row) => [row.name, row.version]));
  }

  /** Bundles with their sealed values. */
  async find(tenantId: string, names: readonly string[]): Promise<SecretBundleRow[]> {
    if (names.length === 0) return [];
    return this.#db
      .selectFrom('secret_bundles')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('name', 'in', names)
      .execute();
  }

  /** Whether there was one to delete. */
  async delete(tenantId: string, name: string): Promise<boolean> {
    const result = await this.#db
      .deleteFrom('secret_bundles')
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .executeTakeFirst();
    return result.numDeletedRows === 1n;
  }

  /** How many bundles there are, and how many of them another master key than this one wraps. */
  async countWrapped(masterKeyId: string): Promise<{ total: number; others: number }> {
    const { rows } = await sql<{ total: number; others: number }>`
      select count(*)::int as total,
        (count(*) filter (where master_key_id <> ${masterKeyId}))::int as others
      from secret_bundles`.execute(this.#db);
    return rows[0] ?? { total: 0, others: 0 };
  }

  /** Wraps up to `most` data keys anew, all or none of them. Answers how many; the values stay as they are. */
  async rewrap(masterKeyId: string, most: number, rewrap: Rewrap<WrappedKeyRow>): Promise<number> {
    return this.#db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('secret_bundles')
        .select(['tenant_id', 'name', 'wrapped_key', 'master_key_id'])
        .where('master_key_id', '<>', masterKeyId)
        .orderBy('tenant_id')
        .orderBy('name')
        .limit(most)
        .forUpdate()
        .execute();
      for (const row of rows) {
        await transaction
          .updateTable('secret_bundles')
          .set({ wrapped_key: rewrap(row), master_key_id: masterKeyId })
          .where('tenant_id', '=', row.tenant_id)
          .where('name', '=', row.name)
          .execute();
      }
      return rows.length;
    });
  }
}

/** The names of a tenant's bundles; no other is added until the transaction ends. */
async function lockNames(transaction: Transaction<Schema>, tenantId: string): Promise<string[]> {
  await transaction
    .selectFrom('tenants')
    .select('tenant_id')
    .where('tenant_id', '=', tenantId)
    .forNoKeyUpdate()
    .execute();
  const rows = await transaction
    .selectFrom('secret_bundles')
    .select('name')
    .where('tenant_id', '=', tenantId)
    .execute();
  return rows.map((row) => row.name);
}

function columnsOf(bundle: SealedBundle) {
  return {
    key_names: [...bundle.keyNames],
    sealed_values: bundle.sealedValues,
    wrapped_key: bundle.wrappedKey,
    master_key_id: bundle.masterKeyId,
  };
}
