import {
  LIMITS,
  type ListSessionsQuery,
  type ListSessionsResponse,
  type SessionRecord,
} from '@svc/contract';
import type { Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';
import { findSession } from './find.ts';
import { toSessionRecord } from './record.ts';

/** Reads sessions from the ledger. */
export class SessionReader {
  readonly #store: Pick<Store, 'sessions'>;

  constructor(store: Pick<Store, 'sessions'>) {
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
}
