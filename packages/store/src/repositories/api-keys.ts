import { hash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../batch-load.ts';
import { ago, removeBatch } from '../remove-batch.ts';
import type { ApiKeyRow, Schema } from '../schema.ts';
import { lockTenant } from './tenants.ts';

/** Revoked keys of a tenant that are kept, so that a loop of creations and revocations stores no more and more. */
const REVOKED_KEPT = 100;
/** Those that one creation removes. Only tenants from before there was a limit have more. */
const REVOKED_REMOVED = 500;

/** The owner of a valid key. */
export interface ApiKeyOwner {
  readonly keyId: string;
  readonly tenantId: string;
}

interface OwnerRow {
  secret_hash: Buffer;
  key_id: string;
  tenant_id: string;
}

/** API keys. Stores only the SHA-256 hash of a key: 256 random bits need no slow hash. */
export class ApiKeyRepository {
  readonly #db: Kysely<Schema>;
  readonly #lookups: Kysely<Schema>;
  readonly #owner: BatchLoad<string, ApiKeyOwner>;

  /** @param lookups connections for authentication */
  constructor(db: Kysely<Schema>, lookups: Kysely<Schema> = db) {
    this.#db = db;
    this.#lookups = lookups;
    this.#owner = batchLoad((hashes) => this.#loadOwners(hashes));
  }

  /** The owner of a valid key. Queries the database on every call, so that a revocation takes effect immediately. */
  async findOwner(secret: string): Promise<ApiKeyOwner | undefined> {
    return this.#owner(hash('sha256', secret));
  }

  /** Adds a key. Undefined when the tenant has `most` or more that are not revoked. Of revoked ones, the last 100 stay. */
  async insert(
    key: {
      keyId: string;
      tenantId: string;
      secret: string;
      prefix: string;
      name?: string | undefined;
    },
    most: number,
  ): Promise<ApiKeyRow | undefined> {
    return this.#db.transaction().execute(async (transaction) => {
      await lockTenant(transaction, key.tenantId);
      await sql`
        delete from api_keys where key_id = any(array(
          select key_id from api_keys where tenant_id = ${key.tenantId} and revoked_at is not null
          order by revoked_at desc, key_id desc offset ${REVOKED_KEPT} limit ${REVOKED_REMOVED}))`.execute(
        transaction,
      );
      const { rows } = await sql<ApiKeyRow>`
        insert into api_keys (key_id, tenant_id, secret_hash, prefix, name)
        select ${key.keyId}, ${key.tenantId}, ${hashSecret(key.secret)}::bytea, ${key.prefix}, ${key.name ?? null}
        where (select count(*) from api_keys
          where tenant_id = ${key.tenantId} and revoked_at is null) < ${most}
        returning *`.execute(transaction);
      return rows[0];
    });
  }

  /** The keys of a tenant, including the 100 that were revoked last, newest first. */
  async list(tenantId: string): Promise<ApiKeyRow[]> {
    const { rows } = await sql<ApiKeyRow>`
      select * from api_keys where tenant_id = ${tenantId} and revoked_at is null
      union all
      (select * from api_keys where tenant_id = ${tenantId} and revoked_at is not null
        order by revoked_at desc, key_id desc limit ${REVOKED_KEPT})
      order by created_at desc, key_id desc`.execute(this.#db);
    return rows;
  }

  /** Removes up to `limit` keys that were revoked longer ago than this. Returns their number. */
  removeRevoked(olderThanSeconds: number, limit: number): Promise<number> {
    return removeBatch(this.#db, 'api_keys', sql`revoked_at < ${ago(olderThanSeconds)}`, limit);
  }

  /** Whether a tenant has this key and it is not revoked. */
  async isValid(tenantId: string, keyId: string): Promise<boolean> {
    const key = await this.#db
      .selectFrom('api_keys')
      .select('key_id')
      .where('tenant_id', '=', tenantId)
      .where('key_id', '=', keyId)
      .where('revoked_at', 'is', null)
      .executeTakeFirst();
    return key !== undefined;
  }

  /** Revokes a key permanently. `unknown` when this tenant has no such key. */
  async revoke(tenantId: string, keyId: string): Promise<'revoked' | 'was_revoked' | 'unknown'> {
    const { rows } = await sql<{ now: boolean }>`
      with found as (
        select key_id, revoked_at from api_keys
        where tenant_id = ${tenantId} and key_id = ${keyId} for no key update
      ), ended as (
        update api_keys set revoked_at = now()
        where key_id in (select key_id from found where revoked_at is null)
      )
      select revoked_at is null as now from found`.execute(this.#db);
    const [found] = rows;
    if (found === undefined) return 'unknown';
    return found.now ? 'revoked' : 'was_revoked';
  }

  /** Also records the use of each key, at most once a minute. Skips rows that another control plane has locked to do so. */
  async #loadOwners(hashes: readonly string[]): Promise<(ApiKeyOwner | undefined)[]> {
    const wanted = hashes.map((hash) => Buffer.from(hash, 'hex'));
    const { rows } = await sql<OwnerRow>`
      with found as (
        select secret_hash, key_id, tenant_id from api_keys
        where secret_hash = any(${wanted}::bytea[]) and revoked_at is null
      ), used as (
        update api_keys set last_used_at = now() where key_id in (
          select key_id from api_keys
          where key_id in (select key_id from found)
            and (last_used_at is null or last_used_at < now() - interval '1 minute')
          for no key update skip locked)
      )
      select * from found`.execute(this.#lookups);
    const owners = new Map(
      rows.map((row) => [
        row.secret_hash.toString('hex'),
        { keyId: row.key_id, tenantId: row.tenant_id },
      ]),
    );
    return hashes.map((hash) => owners.get(hash));
  }
}

function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}
