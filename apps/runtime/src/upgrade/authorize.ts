import { ServiceError, type SessionClaims, type SessionRoute } from '@svc/contract';
import type { SessionTokens } from '@svc/service-kit';
import type { SessionDirectory } from '../control-plane/session-directory.ts';

interface Authorities {
  readonly tokens: SessionTokens;
  readonly sessions: Pick<SessionDirectory, 'find'>;
}

/**
 * Checks that the holder of `token` may attach to the session, and looks up its worker.
 * @throws ServiceError `unauthorized` for a missing, invalid or expired token, and likewise for an unknown session; `session_token_mismatch` and `session_of_another_tenant` for a token of another session or account
 */
export async function authorize(
  sessionId: string,
  token: string | undefined,
  { tokens, sessions }: Authorities,
  signal: AbortSignal,
): Promise<{ claims: SessionClaims; route: SessionRoute }> {
  const claims = await tokens.verify(token);
  const route = await sessions.find(sessionId, signal);
  if (route === undefined) throw new ServiceError('unauthorized');
  if (claims.chat_session_id !== sessionId || claims.chat_session_id !== route.chat_session_id) {
    throw new ServiceError('session_token_mismatch');
  }
  if (claims.user_id !== route.tenant_id) throw new ServiceError('session_of_another_tenant');
  return { claims, route };
}
