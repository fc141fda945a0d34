import type {
  ApiKeyRecord,
  CreateTenantKeyResponse,
  ListTenantKeysResponse,
  MessageResponse,
  TenantRecord,
  VerifyTenantResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** Sign-up, the own account and its API keys. */
export class Tenants {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Has a one-time code mailed to the address. The answer never tells whether it has an account. */
  async requestCode(email: string, options?: CallOptions): Promise<MessageResponse> {
    return this.#transport.json({ method: 'POST', path: '/v1/tenants', json: { email }, options });
  }

  /** Exchanges the mailed code for an API key; makes the account at the first time. */
  async verify(email: string, code: string, options?: CallOptions): Promise<VerifyTenantResponse> {
    return this.#transport.json({
      method: 'POST',
      path: '/v1/tenants/verify',
      json: { email, code },
      options,
    });
  }

  /** The account that the credential belongs to. */
  async me(options?: CallOptions): Promise<TenantRecord> {
    return this.#transport.json({ method: 'GET', path: '/v1/tenants/me', options });
  }

  /** Makes another API key. Its secret is in this answer and nowhere else. */
  async createKey(options?: CallOptions): Promise<CreateTenantKeyResponse> {
    return this.#transport.json({ method: 'POST', path: '/v1/tenants/me/api-keys', options });
  }

  /** The account's keys, revoked ones too, without their secrets. */
  async listKeys(options?: CallOptions): Promise<ApiKeyRecord[]> {
    const { keys } = await this.#transport.json<ListTenantKeysResponse>({
      method: 'GET',
      path: '/v1/tenants/me/api-keys',
      options,
    });
    return keys;
  }

  /** Revokes a key, at once and for good. */
  async revokeKey(keyId: string, options?: CallOptions): Promise<void> {
    const path = `/v1/tenants/me/api-keys/${encodeURIComponent(keyId)}`;
    await this.#transport.empty({ method: 'DELETE', path, options });
  }
}
