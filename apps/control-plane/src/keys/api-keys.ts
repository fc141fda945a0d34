import { randomBytes, randomInt } from 'node:crypto';
import {
  type ApiKeyRecord,
  apiKeyPrefix,
  type CreateApiKeyResponse,
  type CreateTenantKeyResponse,
  makeId,
  ServiceError,
} from '@svc/contract';
import type { ApiKeyRow, Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../auth/caller.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 is more than 2^256. */
const LIVE_CHARS = 43;

/** API keys of both kinds. */
export class ApiKeys {
  readonly #store: Pick<Store, 'apiKeys' | 'tenants'>;
  readonly #audit: AuditTrail;
  readonly #most: number;

  /** @param most keys of a tenant that are not revoked */
  constructor(store: Pick<Store, 'apiKeys' | 'tenants'>, audit: AuditTrail, most: number) {
    this.#store = store;
    this.#audit = audit;
    this.#most = most;
  }

  /** Creates a key of the tenant routes. @throws ServiceError `api_key_limit_reached` */
  async createTenantKey(caller: Caller, name?: string): Promise<CreateTenantKeyResponse> {
    const secret = `svc_${randomBytes(32).toString('hex')}`;
    const { row, plan } = await this.#create(caller, secret, name);
    return {
      key_id: row.key_id,
      ...nameOf(row),
      prefix: row.prefix,
      api_key: secret,
      plan_tier: plan,
      created_at: row.created_at.toISOString(),
    };
  }

  /** Creates a key of the account routes. @throws ServiceError `api_key_limit_reached` */
  async createLiveKey(caller: Caller, name?: string): Promise<CreateApiKeyResponse> {
    const secret = `svc_live_${base62(LIVE_CHARS)}`;
    const { row } = await this.#create(caller, secret, name);
    return { key_id: row.key_id, key: secret, prefix: row.prefix, ...nameOf(row) };
  }

  /** The keys of the tenant, including the last revoked ones, newest first. */
  async list(tenantId: string): Promise<ApiKeyRecord[]> {
    const [plan, rows] = await Promise.all([
      this.#planOf(tenantId),
      this.#store.apiKeys.list(tenantId),
    ]);
    return rows.map((row) => recordOf(row, plan));
  }

  /** Revokes a key permanently and immediately, on every control plane. @throws ServiceError `api_key_not_found` */
  async revoke(caller: Caller, keyId: string): Promise<void> {
    // No id contains NUL, and PostgreSQL would reject the whole statement.
    const outcome = keyId.includes('\0')
      ? 'unknown'
      : await this.#store.apiKeys.revoke(caller.tenantId, keyId);
    if (outcome === 'unknown') throw new ServiceError('api_key_not_found');
    if (outcome === 'revoked') await this.#audit.note(caller, 'api_key_revoked', { key_id: keyId });
  }

  async #create(caller: Caller, secret: string, name: string | undefined) {
    const plan = await this.#planOf(caller.tenantId);
    const key = {
      keyId: makeId('key', uuidv7()),
      tenantId: caller.tenantId,
      secret,
      prefix: apiKeyPrefix(secret),
      name,
    };
    const row = await this.#store.apiKeys.insert(key, this.#most);
    if (row === undefined) throw new ServiceError('api_key_limit_reached');
    await this.#audit.note(caller, 'api_key_created', { key_id: row.key_id });
    return { row, plan };
  }

  async #planOf(tenantId: string): Promise<string> {
    const tenant = await this.#store.tenants.find(tenantId);
    // A token may outlive its account.
    if (tenant === undefined) throw new ServiceError('unauthorized');
    return tenant.plan;
  }
}

function recordOf(row: ApiKeyRow, plan: string): ApiKeyRecord {
  return {
    key_id: row.key_id,
    ...nameOf(row),
    prefix: row.prefix,
    plan_tier: plan,
    revoked: row.revoked_at !== null,
    created_at: row.created_at.toISOString(),
    ...(row.last_used_at === null ? {} : { last_used_at: row.last_used_at.toISOString() }),
  };
}

function nameOf(row: ApiKeyRow): { name?: string } {
  return row.name === null ? {} : { name: row.name };
}

function base62(length: number): string {
  return Array.from({ length }, () => BASE62[randomInt(BASE62.length)]).join('');
}
