import { checkPort, LIMITS, type PortLink, parsePort, ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import type { FastifyRequest } from 'fastify';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Authenticators } from '../auth/authenticators.ts';
import type { Caller } from '../auth/caller.ts';
import { setStatementOwner } from '../auth/statement-owners.ts';
import { findSandbox } from '../sandboxes/find.ts';
import { USABLE } from '../sandboxes/usable.ts';
import type { LinkTokens } from './link-tokens.ts';
import { linkPath, portTarget } from './port-target.ts';

export interface PortLinksParts {
  readonly store: Pick<Store, 'sandboxes' | 'apiKeys'>;
  readonly tokens: LinkTokens;
  readonly audit: AuditTrail;
  readonly apiKey: Authenticators['apiKeyUncounted'];
  /** Public URL of the control plane, read for each link. */
  readonly baseUrl: () => string;
}

/** Links to ports, and the authentication of requests by them or by an API key. */
export class PortLinks {
  readonly #parts: PortLinksParts;

  constructor(parts: PortLinksParts) {
    this.#parts = parts;
  }

  /**
   * Makes a link to one port of a sandbox, which ends with its time, its sandbox or the caller's API key.
   * @throws ServiceError `sandbox_not_found`, `sandbox_not_running`, `port_not_allowed`
   */
  async create(
    caller: Caller,
    vmId: string,
    port: number,
    seconds: number = LIMITS.portLinkSecondsDefault,
  ): Promise<PortLink> {
    const { store, tokens, audit, baseUrl } = this.#parts;
    checkPort(port);
    const row = await findSandbox(store, caller, vmId);
    if (!USABLE.includes(row.state)) throw new ServiceError('sandbox_not_running');
    const { tenantId, keyId } = caller;
    // Accounts make no links: their tokens cannot be revoked.
    if (keyId === undefined) throw new ServiceError('unauthorized');
    const expiresAt = new Date((Math.floor(Date.now() / 1000) + seconds) * 1000);
    const claims = { tenant_id: tenantId, key_id: keyId, vm_id: row.vm_id, port };
    const token = await tokens.mint(claims, expiresAt);
    const expires_at = expiresAt.toISOString();
    await audit.note(caller, 'port_link_created', { vm_id: row.vm_id, port, expires_at });
    return { url: new URL(linkPath(row.vm_id, port, token), baseUrl()).href, expires_at };
  }

  /** The hook of the route: admits the bearer of an API key, or of a link to this very port. */
  readonly authenticate = async (request: FastifyRequest): Promise<void> => {
    const token = portTarget(request.raw)?.token;
    if (token === undefined) return this.#parts.apiKey(request);
    const {
      tenant_id: tenantId,
      key_id: keyId,
      vm_id,
      port,
    } = await this.#parts.tokens.verify(token);
    const { id, port: asked } = request.params as { id: string; port: string };
    if (vm_id !== id || port !== parsePort(asked)) throw new ServiceError('unauthorized');
    if (!(await this.#parts.store.apiKeys.isValid(tenantId, keyId))) {
      throw new ServiceError('unauthorized');
    }
    request.caller = { tenantId, keyId };
    setStatementOwner(request, { pool: 'customers', key: tenantId });
  };
}
