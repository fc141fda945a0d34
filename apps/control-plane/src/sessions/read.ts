import {
  hasDesktop,
  isActive,
  LIMITS,
  type ListSessionsQuery,
  type ListSessionsResponse,
  makeId,
  RUNTIME_NAME,
  ServiceError,
  type SessionRecord,
  type SessionRoute,
} from '@svc/contract';
import type { RoutedSession, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import { USABLE } from '../sandboxes/usable.ts';
import { sandboxFacts } from './access.ts';
import { findSession, isSessionId } from './find.ts';
import { toSessionRecord } from './record.ts';

/** Reads sessions from the ledger. */
export class SessionReader {
  readonly #store: Pick<Store, 'sessions' | 'sandboxes'>;

  constructor(store: Pick<Store, 'sessions' | 'sandboxes'>) {
    this.#store = store;
  }

  /** @throws ServiceError `session_not_found` */
  async get(caller: Caller, sessionId: string): Promise<SessionRecord> {
    return toSessionRecord(await findSession(this.#store, caller, sessionId));
  }

  /** A page of the tenant's sessions, newest first. */
  async list({ tenantId }: Caller, query: ListSessionsQuery): Promise<ListSessionsResponse> {
    const { limit = LIMITS.pageDefault, offset = 0 } = query;
    const { rows, total } = await this.#store.sessions.list(tenantId, { limit, offset });
    return { sessions: rows.map(toSessionRecord), total };
  }

  /** Owner and worker of a session, or of a sandbox's agent, for runtime hosts only. @throws ServiceError `session_not_found` */
  async route(caller: string | undefined, sessionId: string): Promise<SessionRoute> {
    const known = caller === RUNTIME_NAME && isSessionId(sessionId);
    const row = known ? await this.#find(sessionId) : undefined;
    if (row === undefined) throw new ServiceError('session_not_found');
    const { vm_id, worker_id, url, certificate } = row;
    const runs = vm_id !== null && worker_id !== null && url !== null && certificate !== null;
    return {
      chat_session_id: row.session_id,
      tenant_id: row.tenant_id,
      user_id: row.tenant_id,
      app_id: row.app_id,
      set_id: row.set_id,
      cua_enabled: hasDesktop(row.template),
      status: row.status,
      expires_at: row.expires_at.toISOString(),
      ...(runs ? { worker: { worker_id, url, certificate, vm_id } } : {}),
    };
  }

  /** The route of a session or, with the UUID of a sandbox, of its agent. */
  async #find(uuid: string): Promise<RoutedSession | undefined> {
    const { sessions, sandboxes } = this.#store;
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
