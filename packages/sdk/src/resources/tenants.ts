import type { MessageResponse, TenantRecord, VerifyTenantResponse } from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** Sign-up and the caller's account. */
export class Tenants {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Requests a one-time code by mail. The response never reveals whether the address has an account. */
  async requestCode(email: string, options?: CallOptions): Promise<MessageResponse> {
    return this.#transport.json({ method: 'POST', path: '/v1/tenants', json: { email }, options });
  }

  /** Exchanges the mailed code for an API key. Creates the account the first time. */
  async verify(email: string, code: string, options?: CallOptions): Promise<VerifyTenantResponse> {
    return this.#transport.json({
      method: 'POST',
      path: '/v1/tenants/verify',
      json: { email, code },
      options,
    });
  }

  /** The account to which the credential belongs. */
  async me(options?: CallOptions): Promise<TenantRecord> {
    return this.#transport.json({ method: 'GET', path: '/v1/tenants/me', options });
  }
}
