import { randomBytes } from 'node:crypto';
import {
  apiKeyPrefix,
  makeId,
  normaliseEmail,
  ServiceError,
  type TenantRecord,
  type VerifyTenantResponse,
} from '@svc/contract';
import type { Store } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { AccountTokens } from '../auth/account-tokens.ts';
import type { OneTimeCodes } from './one-time-codes.ts';

/** Accounts: signing up by mail, and what a caller may know of its own. */
export class Tenants {
  readonly #store: Store;
  readonly #codes: OneTimeCodes;
  readonly #tokens: AccountTokens;

  constructor(store: Store, codes: OneTimeCodes, tokens: AccountTokens) {
    this.#store = store;
    this.#codes = codes;
    this.#tokens = tokens;
  }

  /** Sends a code to this address. @throws ServiceError `email_invalid`, and those of sending */
  async requestCode(emailAsGiven: string, ip: string): Promise<void> {
    const email = normaliseEmail(emailAsGiven);
    if (email === undefined) throw new ServiceError('email_invalid');
    await this.#codes.send(email, ip);
  }

  /** Turns a code into an account, a new API key and an account token. @throws ServiceError `otp_invalid` */
  async verify(emailAsGiven: string, code: string): Promise<VerifyTenantResponse> {
    const email = normaliseEmail(emailAsGiven);
    if (email === undefined) throw new ServiceError('otp_invalid');
    await this.#codes.redeem(email, code).catch((error: unknown) => this.#refused(email, error));
    const tenant = await this.#store.tenants.findOrCreate(email, makeId('user', uuidv7()));
    const tenantId = tenant.tenant_id;
    const secret = `svc_${randomBytes(32).toString('hex')}`;
    const key = await this.#store.apiKeys.insert({
      keyId: makeId('key', uuidv7()),
      tenantId,
      secret,
      prefix: apiKeyPrefix(secret),
    });
    await this.#store.audit.append({ event: 'login_succeeded', tenantId });
    await this.#store.audit.append({
      event: 'api_key_created',
      tenantId,
      details: { key_id: key.key_id },
    });
    return {
      tenant_id: tenantId,
      key_id: key.key_id,
      prefix: key.prefix,
      api_key: secret,
      plan_tier: tenant.plan,
      created_at: key.created_at.toISOString(),
      token: await this.#tokens.sign({ tenantId, email }),
    };
  }

  /** The caller's own account. */
  async describe(tenantId: string): Promise<TenantRecord> {
    const tenant = await this.#store.tenants.find(tenantId);
    // A token may outlive its account.
    if (tenant === undefined) throw new ServiceError('unauthorized');
    return {
      tenant_id: tenant.tenant_id,
      email: tenant.email,
      created_at: tenant.created_at.toISOString(),
      plan: tenant.plan,
    };
  }

  async #refused(email: string, error: unknown): Promise<never> {
    if (error instanceof ServiceError && error.code === 'otp_invalid') {
      await this.#store.audit.append({ event: 'login_failed', details: { email } });
    }
    throw error;
  }
}
