import { randomUUID } from 'node:crypto';
import { ServiceError } from '@svc/contract';
import type { SessionLease, SessionRow, Store } from '@svc/store';

/** Short, so that others wait little after a crash; renewed while the work runs. */
const LEASE_SECONDS = 15;
const RENEW_MS = 5_000;

type Sessions = Pick<Store['sessions'], 'claim' | 'renew' | 'release'>;

/** A lease on a session for one request. */
export function newLease(sessionId: string): SessionLease {
  return { sessionId, holder: randomUUID(), seconds: LEASE_SECONDS };
}

/**
 * Runs work that only one request at a time may do on a session, such as starting or stopping it.
 * @throws ServiceError `session_starting` while another request holds the session
 */
export async function withSessionLease<T>(
  sessions: Sessions,
  sessionId: string,
  work: (session: SessionRow) => Promise<T>,
): Promise<T> {
  const lease = newLease(sessionId);
  const session = await sessions.claim(lease);
  if (session === undefined) {
    throw new ServiceError('session_starting');
  }
  return withHeldLease(sessions, lease, () => work(session));
}

/** Runs work under a lease that is held already, then releases the lease. */
export async function withHeldLease<T>(
  sessions: Sessions,
  lease: SessionLease,
  work: () => Promise<T>,
): Promise<T> {
  // One missed renewal does no harm. After many, the generation in each statement still protects the session.
  const renewal = setInterval(() => void sessions.renew(lease).catch(() => undefined), RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    // If the database fails as well, the lease expires.
    await sessions.release(lease).catch(() => undefined);
  }
}
