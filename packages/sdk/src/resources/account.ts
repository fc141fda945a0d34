import type {
  ApiKeyRecord,
  AuditEntry,
  AuditQuery,
  CreateApiKeyRequest,
  CreateApiKeyResponse,
  ListApiKeysResponse,
  ListAuditResponse,
  MessageResponse,
  RevokeApiKeyResponse,
  VerifyOtpResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** Calls with an account token: sign-in, the account's API keys and audit records. */
export class Account {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Requests a one-time code by mail. The response never reveals whether the address has an account. */
  async login(email: string, options?: CallOptions): Promise<MessageResponse> {
    return this.#post('/v1/auth/login', { email }, options);
  }

  /** The same for a new address. */
  async register(email: string, options?: CallOptions): Promise<MessageResponse> {
    return this.#post('/v1/auth/register', { email }, options);
  }

  /** Exchanges the mailed code for an account token. */
  async verifyOtp(email: string, code: string, options?: CallOptions): Promise<VerifyOtpResponse> {
    return this.#post('/v1/auth/verify-otp', { email, code }, options);
  }

  /** Creates an API key. Only this result contains its secret. */
  async createKey(
    request: CreateApiKeyRequest = {},
    options?: CallOptions,
  ): Promise<CreateApiKeyResponse> {
    return this.#post('/v1/api-keys', request, options);
  }

  /** All API keys, including the 100 that were revoked last. */
  async listKeys(options?: CallOptions): Promise<ApiKeyRecord[]> {
    const answer = await this.#transport.json<ListApiKeysResponse>({
      method: 'GET',
      path: '/v1/api-keys',
      options,
    });
    return answer.api_keys;
  }

  /** Revokes an API key permanently. */
  async revokeKey(keyId: string, options?: CallOptions): Promise<RevokeApiKeyResponse> {
    const path = `/v1/api-keys/${encodeURIComponent(keyId)}`;
    return this.#transport.json({ method: 'DELETE', path, options });
  }

  /** One page of the account's audit records, newest first. */
  async auditPage(query: AuditQuery = {}, options?: CallOptions): Promise<ListAuditResponse> {
    return this.#transport.json({ method: 'GET', path: '/v1/audit', query, options });
  }

  /** The account's audit records, newest first. Fetches pages as the loop needs them. */
  async *audit(options?: CallOptions): AsyncGenerator<AuditEntry, void, void> {
    let cursor: string | undefined;
    do {
      const query = { limit: 100, ...(cursor === undefined ? {} : { cursor }) };
      const page = await this.auditPage(query, options);
      yield* page.entries;
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  #post<T>(path: string, json: unknown, options: CallOptions | undefined): Promise<T> {
    return this.#transport.json({ method: 'POST', path, json, options });
  }
}
