import type {
  ApiKeyRecord,
  CreateApiKeyRequest,
  CreateTenantKeyResponse,
  ListTenantKeysResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

const PATH = '/v1/tenants/me/api-keys';

/** The tenant's API keys, managed with an API key. */
export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Makes a key; its secret is in this answer and nowhere after. */
  async create(
    request: CreateApiKeyRequest = {},
    options?: CallOptions,
  ): Promise<CreateTenantKeyResponse> {
    return this.#transport.json({ method: 'POST', path: PATH, json: request, options });
  }

  /** Every key, revoked ones too, newest first. */
  async list(options?: CallOptions): Promise<ApiKeyRecord[]> {
    const answer = await this.#transport.json<ListTenantKeysResponse>({
      method: 'GET',
      path: PATH,
      options,
    });
    return answer.keys;
  }

  /** Ends a key for good; it is refused from this moment on. */
  async revoke(keyId: string, options?: CallOptions): Promise<void> {
    const path = `${PATH}/${encodeURIComponent(keyId)}`;
    await this.#transport.empty({ method: 'DELETE', path, options });
  }
}
