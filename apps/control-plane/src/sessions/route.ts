import { hasDesktop, isActive, makeId, ServiceError, type SessionRoute } from '@svc/contract';
import type { SessionIdentity, SessionTokens } from '@svc/service-kit';
import type { RoutedSession, Store } from '@svc/store';
import { USABLE } from '../sandboxes/usable.ts';
import { sandboxFacts } from './access.ts';
import { isSessionId } from './find.ts';

export interface SessionRouterParts {
  readonly store: Pick<Store, 'sessions' | 'sandboxes'>;
  /** Verifies the tokens of clients. */
  readonly tokens: Pick<SessionTokens, 'verify'>;
  /** Mints the token with which a runtime host attaches to a session at its worker. */
  readonly mintHopToken: (identity: SessionIdentity, workerId: string) => Promise<string>;
}

/** Tells runtime hosts where the sessions of their clients are. */
export class SessionRouter {
  readonly #parts: SessionRouterParts;

  constructor(parts: SessionRouterParts) {
    this.#parts = parts;
  }

  /**
   * Owner and worker of a session, or of a sandbox's agent, for the bearer of the token of a client.
   * @throws ServiceError `unauthorized` for a missing, invalid or expired token, and likewise for an unknown session;
   *   `session_token_mismatch` and `session_of_another_tenant` for a token of another session or account
   */
  async route(sessionId: string, clientToken: string | undefined): Promise<SessionRoute> {
    const claims = await this.#parts.tokens.verify(clientToken);
    const row = isSessionId(sessionId) ? await this.#find(sessionId) : undefined;
    if (row === undefined) throw new ServiceError('unauthorized');
    if (claims.chat_session_id !== sessionId || claims.chat_session_id !== row.session_id) {
      throw new ServiceError('session_token_mismatch');
    }
    if (claims.user_id !== row.tenant_id) throw new ServiceError('session_of_another_tenant');
    const identity = {
      user_id: row.tenant_id,
      app_id: row.app_id,
      set_id: row.set_id,
      chat_session_id: row.session_id,
      cua_enabled: hasDesktop(row.template),
    };
    const worker = await this.#workerOf(row, identity);
    return {
      ...identity,
      tenant_id: row.tenant_id,
      status: row.status,
      expires_at: row.expires_at.toISOString(),
      ...(worker === undefined ? {} : { worker }),
    };
  }

  async #workerOf(
    { vm_id, worker_id, url, certificate }: RoutedSession,
    identity: SessionIdentity,
  ): Promise<SessionRoute['worker']> {
    if (vm_id === null || worker_id === null || url === null || certificate === null) {
      return undefined;
    }
    const token = await this.#parts.mintHopToken(identity, worker_id);
    return { worker_id, url, certificate, vm_id, token };
  }

  /** The route of a session or, with the UUID of a sandbox, of its agent. */
  async #find(uuid: string): Promise<RoutedSession | undefined> {
    const { sessions, sandboxes } = this.#parts.store;
    const session = await sessions.route(uuid);
    if (session !== undefined) return session;
    const sandbox = await sandboxes.agentRoute(makeId('sandbox', uuid));
    if (sandbox === undefined) return undefined;
    const { vm_id, worker_id, url, certificate } = sandbox;
    const runs = USABLE.includes(sandbox.state) && sandbox.delete_requested_at === null;
    return {
      ...sandboxFacts(sandbox),
      status: isActive(sandbox.state) ? 'active' : 'completed',
      ...(runs
        ? { vm_id, worker_id, url, certificate }
        : { vm_id: null, worker_id: null, url: null, certificate: null }),
    };
  }
}
