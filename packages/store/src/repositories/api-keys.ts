import { createHash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../batch.ts';
import type { ApiKeyRow, Schema } from '../schema.ts';

/** Who a valid key belongs to. */
export interface ApiKeyOwner {
  readonly keyId: string;
  readonly tenantId: string;
}

interface OwnerRow {
  secret_hash: Buffer;
  key_id: string;
  tenant_id: string;
}

/** API keys. Only the SHA-256 of a key is kept: 256 random bits need no slow hash. */
export class ApiKeyRepository {
  readonly #db: Kysely<Schema>;
  readonly #owner: BatchLoad<string, ApiKeyOwner>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#owner = batchLoad((hashes) => this.#loadOwners(hashes));
  }

  /** The owner of a key that is valid now; looked up on every call, so a revocation holds at once. */
  async findOwner(secret: string): Promise<ApiKeyOwner | undefined> {
    return this.#owner(hashSecret(secret).toString('hex'));
  }

  async insert(key: {
    keyId: string;
    tenantId: string;
    secret: string;
    prefix: string;
  }): Promise<ApiKeyRow> {
    return this.#db
      .insertInto('api_keys')
      .values({
        key_id: key.keyId,
        tenant_id: key.tenantId,
        secret_hash: hashSecret(key.secret),
        prefix: key.prefix,
      })
      .returningAll()
      .executeTakeFirstOrThrow();
  }

  async #loadOwners(hashes: readonly string[]): Promise<(ApiKeyOwner | undefined)[]> {
    const wanted = hashes.map((hash) => Buffer.from(hash, 'hex'));
    const { rows } = await sql<OwnerRow>`
      select secret_hash, key_id, tenant_id from api_keys
      where secret_hash = any(${wanted}::bytea[]) and revoked_at is null`.execute(this.#db);
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
  return createHash('sha256').update(secret).digest();
}
