import type {
  BundleRecord,
  CreateBundleResponse,
  DeleteBundleResponse,
  ListBundlesResponse,
  RotateBundleResponse,
} from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

const PATH = '/v1/tenants/me/secrets';

/** Values of a bundle by environment variable name. */
export type SecretValues = Readonly<Record<string, string>>;

/** Secret bundles. Their values can be written but never read. */
export class Secrets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a bundle. */
  async create(
    name: string,
    values: SecretValues,
    options?: CallOptions,
  ): Promise<CreateBundleResponse> {
    return this.#transport.json({ method: 'POST', path: PATH, json: { name, values }, options });
  }

  /** Replaces all values of a bundle; running sessions that use it get the new ones. */
  async rotate(
    name: string,
    values: SecretValues,
    options?: CallOptions,
  ): Promise<RotateBundleResponse> {
    const path = pathOf(name);
    // Not retried automatically: each call would count as a rotation.
    return this.#transport.json({
      method: 'PUT',
      path,
      json: { values },
      repeatable: false,
      options,
    });
  }

  async list(options?: CallOptions): Promise<BundleRecord[]> {
    const answer = await this.#transport.json<ListBundlesResponse>({
      method: 'GET',
      path: PATH,
      options,
    });
    return answer.bundles;
  }

  async get(name: string, options?: CallOptions): Promise<BundleRecord> {
    return this.#transport.json({ method: 'GET', path: pathOf(name), options });
  }

  async delete(name: string, options?: CallOptions): Promise<DeleteBundleResponse> {
    return this.#transport.json({ method: 'DELETE', path: pathOf(name), options });
  }
}

function pathOf(name: string): string {
  return `${PATH}/${encodeURIComponent(name)}`;
}
