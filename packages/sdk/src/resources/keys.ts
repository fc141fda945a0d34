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

  /** Creates a key. Only this result contains its secret. */
  async create(
    request: CreateApiKeyRequest = {},
    options?: CallOptions,
  ): Promise<CreateTenantKeyResponse> {
    return this.#transport.json({ method: 'POST', path: PATH, json: request, options });
  }

  /** All keys, including the 100 that were revoked last, newest first. */
  async list(options?: CallOptions): Promise<ApiKeyRecord[]> {
    const answer = await this.#transport.json<ListTenantKeysResponse>({
      method: 'GET',
      path: PATH,
      options,
    });
    return answer.keys;
  }

  /** Revokes a key permanently, effective immediately. */
  async revoke(keyId: string, options?: CallOptions): Promise<void> {
    const path = `${PATH}/${encodeURIComponent(keyId)}`;
    await this.#transport.empty({ method: 'DELETE', path, options });
  }
}
