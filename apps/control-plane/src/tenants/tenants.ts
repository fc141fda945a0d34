import {
  isServiceError,
  makeId,
  normaliseEmail,
  ServiceError,
  type TenantRecord,
  type VerifyOtpResponse,
  type VerifyTenantResponse,
} from '@svc/contract';
import type { Store, TenantRow } from '@svc/store';
import { uuidv7 } from 'uuidv7';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { AccountTokens } from '../auth/account-tokens.ts';
import type { ApiKeys } from '../keys/api-keys.ts';
import { networkOf, type OneTimeCodes } from './one-time-codes.ts';

interface TenantsParts {
  readonly tenants: Store['tenants'];
  /** Credit of a new account. */
  readonly grantCents: number;
  readonly codes: OneTimeCodes;
  readonly tokens: AccountTokens;
  readonly keys: ApiKeys;
  readonly audit: AuditTrail;
}

/** Accounts: sign-up and sign-in by mail, and the caller's own account. */
export class Tenants {
  readonly #parts: TenantsParts;

  constructor(parts: TenantsParts) {
    this.#parts = parts;
  }

  /** Sends a code to this address. @throws ServiceError `email_invalid`, and the errors of sending */
  async requestCode(emailAsGiven: string, ip: string): Promise<void> {
    const email = normaliseEmail(emailAsGiven);
    if (email === undefined) throw new ServiceError('email_invalid');
    await this.#parts.codes.send(email, ip);
  }

  /**
   * Exchanges a code for an account, a new API key and an account token. The code is used up in any case: whoever has none
   * learns nothing about the keys of the account.
   * @throws ServiceError `otp_invalid`, `ip_rate_limited`, `api_key_limit_reached`
   */
  async verify(emailAsGiven: string, code: string, ip: string): Promise<VerifyTenantResponse> {
    const { tenant, token } = await this.#signIn(emailAsGiven, code, ip);
    const key = await this.#parts.keys.createTenantKey({ tenantId: tenant.tenant_id });
    return { tenant_id: tenant.tenant_id, ...key, token };
  }

  /** Exchanges a code for an account and an account token. @throws ServiceError `otp_invalid`, `ip_rate_limited` */
  async signIn(emailAsGiven: string, code: string, ip: string): Promise<VerifyOtpResponse> {
    const { tenant, token } = await this.#signIn(emailAsGiven, code, ip);
    return { token, user_id: tenant.tenant_id, email: tenant.email };
  }

  /** The account of the caller. */
  async describe(tenantId: string): Promise<TenantRecord> {
    const tenant = await this.#parts.tenants.find(tenantId);
    // A token may outlive its account.
    if (tenant === undefined) throw new ServiceError('unauthorized');
    return {
      tenant_id: tenant.tenant_id,
      email: tenant.email,
      created_at: tenant.created_at.toISOString(),
      plan: tenant.plan,
    };
  }

  async #signIn(
    emailAsGiven: string,
    code: string,
    ip: string,
  ): Promise<{ tenant: TenantRow; token: string }> {
    const email = normaliseEmail(emailAsGiven);
    if (email === undefined) throw new ServiceError('otp_invalid');
    const { audit, codes, tenants, tokens, grantCents } = this.#parts;
    await codes.redeem(email, code, ip).catch((error: unknown) => this.#refused(email, ip, error));
    const tenant = await tenants.findOrCreate(email, makeId('user', uuidv7()), grantCents);
    const tenantId = tenant.tenant_id;
    await audit.append({ event: 'login_succeeded', tenantId });
    return { tenant, token: await tokens.sign({ tenantId, email }) };
  }

  async #refused(email: string, ip: string, error: unknown): Promise<never> {
    if (isServiceError(error, 'otp_invalid')) {
      const tenant = await this.#parts.tenants.findByEmail(email);
      const failure = {
        event: 'login_failed',
        tenantId: tenant?.tenant_id,
        details: { email },
      } as const;
      await this.#parts.audit.appendRepeated(failure, { network: networkOf(ip) });
    }
    throw error;
  }
}
