import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema, SecretBundleRow } from '../schema.ts';
import { announce } from './config-updates.ts';
import { isCurrentMasterKey } from './master-keys.ts';

/** The stored form of a bundle's values: sealed with a data key, which is wrapped by a master key. */
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

/** The master key is no longer current. The caller must wrap the data key again with the current one. */
export type MasterKeyChanged = 'master_key_changed';

/** Wraps the data key of a row again and returns the new wrapped key. */
export type Rewrap<Row> = (row: Row) => Buffer;

export type WrappedKeyRow = Pick<
  SecretBundleRow,
  'tenant_id' | 'name' | 'wrapped_key' | 'master_key_id'
>;

/** Sealed secret bundles. This code cannot open them. */
export class SecretBundleRepository {
  readonly #db: Kysely<Schema>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
  }

  /** Adds a bundle, unless the name is taken or the tenant has the maximum number. Safe under concurrency. */
  async insert(
    bundle: NewBundle,
    maxPerTenant: number,
  ): Promise<SecretBundleRow | 'exists' | 'quota_exceeded' | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, bundle.masterKeyId))) return 'master_key_changed';
      const names = await lockNames(transaction, bundle.tenantId);
      if (names.includes(bundle.name)) return 'exists';
      if (names.length >= maxPerTenant) return 'quota_exceeded';
      return transaction
        .insertInto('secret_bundles')
        .values({ tenant_id: bundle.tenantId, name: bundle.name, ...columnsOf(bundle) })
        .returningAll()
        .executeTakeFirstOrThrow();
    });
  }

  /**
   * Replaces all values of a bundle, and adds notices for the running sessions that use it, which expire after
   * `expirySeconds`. Undefined when there is no bundle with this name.
   */
  async replace(
    bundle: NewBundle,
    expirySeconds: number,
  ): Promise<SecretBundleRow | undefined | MasterKeyChanged> {
    return this.#db.transaction().execute(async (transaction) => {
      if (!(await isCurrentMasterKey(transaction, bundle.masterKeyId))) return 'master_key_changed';
      const rotated = await transaction
        .updateTable('secret_bundles')
        .set({
          ...columnsOf(bundle),
          version: sql<number>`nextval('secret_bundle_versions')`,
          last_rotated_at: sql<Date>`now()`,
        })
        .where('tenant_id', '=', bundle.tenantId)
        .where('name', '=', bundle.name)
        .returningAll()
        .executeTakeFirst();
      if (rotated !== undefined) await announce(transaction, rotated, expirySeconds);
      return rotated;
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

  /** The properties of a bundle that are not secret. */
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

  /** The versions of these bundles, by name. Omits names without a bundle. */
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

  /** Deletes this version of a bundle. False when there was none. */
  async delete(tenantId: string, name: string, version: number): Promise<boolean> {
    const result = await this.#db
      .deleteFrom('secret_bundles')
      .where('tenant_id', '=', tenantId)
      .where('name', '=', name)
      .where('version', '=', version)
      .executeTakeFirst();
    return result.numDeletedRows === 1n;
  }

  /** The number of bundles, and how many of their data keys are wrapped by other master keys. */
  async countWrapped(masterKeyId: string): Promise<{ total: number; others: number }> {
    const { rows } = await sql<{ total: number; others: number }>`
      select count(*)::int as total,
        (count(*) filter (where master_key_id <> ${masterKeyId}))::int as others
      from secret_bundles`.execute(this.#db);
    return rows[0] ?? { total: 0, others: 0 };
  }

  /** Rewraps up to `limit` data keys in one transaction and returns their number. The values do not change. */
  async rewrap(masterKeyId: string, limit: number, rewrap: Rewrap<WrappedKeyRow>): Promise<number> {
    return this.#db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('secret_bundles')
        .select(['tenant_id', 'name', 'wrapped_key', 'master_key_id'])
        .where('master_key_id', '<>', masterKeyId)
        .orderBy('tenant_id')
        .orderBy('name')
        .limit(limit)
        .forNoKeyUpdate()
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

/** The names of a tenant's bundles. Blocks other inserts for this tenant until the transaction ends. */
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
