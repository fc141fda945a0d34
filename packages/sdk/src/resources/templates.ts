import type { CatalogueEntry, ListTemplatesResponse } from '@svc/contract';
import type { CallOptions, Transport } from '../transport/request.ts';

/** The apps for sessions. */
export class Templates {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(options?: CallOptions): Promise<CatalogueEntry[]> {
    const answer = await this.#transport.json<ListTemplatesResponse>({
      method: 'GET',
      path: '/v1/templates',
      options,
    });
    return answer.templates;
  }

  async get(appId: string, options?: CallOptions): Promise<CatalogueEntry> {
    const path = `/v1/templates/${encodeURIComponent(appId)}`;
    return this.#transport.json({ method: 'GET', path, options });
  }
}
