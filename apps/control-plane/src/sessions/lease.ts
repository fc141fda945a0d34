import { randomUUID } from 'node:crypto';
import { ServiceError } from '@svc/contract';
import type { SessionLease, SessionRow, Store } from '@svc/store';

/** Renewed while the work goes on, so that after a crash others need not wait long. */
const LEASE_SECONDS = 15;
const RENEW_MS = 5_000;

type Sessions = Pick<Store['sessions'], 'claim' | 'renew' | 'release'>;

/** A lease on a session, in the name of one request. */
export function newLease(sessionId: string): SessionLease {
  return { sessionId, holder: randomUUID(), seconds: LEASE_SECONDS };
}

/**
 * Does work that only one request at a time may do with a session, such as starting or stopping it.
 * @throws ServiceError `session_starting` while another one does
 */
export async function withSession<T>(
  sessions: Sessions,
  sessionId: string,
  work: (session: SessionRow) => Promise<T>,
): Promise<T> {
  const lease = newLease(sessionId);
  const session = await sessions.claim(lease);
  if (session === undefined) {
    throw new ServiceError('session_starting', undefined, { headers: { 'retry-after': '1' } });
  }
  return holding(sessions, lease, () => work(session));
}

/** Does work under a lease that was taken already, and gives it back. */
export async function holding<T>(
  sessions: Sessions,
  lease: SessionLease,
  work: () => Promise<T>,
): Promise<T> {
  // A missed renewal matters only if many are missed, and then every change still names its generation.
  const renewal = setInterval(() => void sessions.renew(lease).catch(() => undefined), RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    // Where the database fails as well, the lease runs out by itself.
    await sessions.release(lease).catch(() => undefined);
  }
}
