import { ServiceError } from '@svc/contract';
import type { SeenSession, Store } from '@svc/store';
import type { Caller } from '../auth/caller.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether `text` has the form of a session id. The database rejects any other. */
export function isSessionId(text: string): boolean {
  return UUID.test(text);
}

/** Finds a session of the caller. @throws ServiceError `session_not_found` */
export async function findSession(
  store: Pick<Store, 'sessions'>,
  { tenantId }: Caller,
  sessionId: string,
): Promise<SeenSession> {
  const row = isSessionId(sessionId) ? await store.sessions.find(sessionId) : undefined;
  if (row === undefined || row.tenant_id !== tenantId) throw new ServiceError('session_not_found');
  return row;
}
