import type { SessionAccess } from '@svc/contract';
import type { SessionTokens } from '@svc/service-kit';
import type { SessionRow } from '@svc/store';

/** The facts that access to a session is derived from. */
export type AccessFacts = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'app_id' | 'set_id' | 'template' | 'expires_at'
>;

/** Issues the URL and token of a session's WebSocket. Equal facts give equal tokens. */
export class SessionAccessIssuer {
  readonly #tokens: SessionTokens;
  readonly #runtimeUrl: () => string;

  constructor(tokens: SessionTokens, runtimeUrl: () => string) {
    this.#tokens = tokens;
    this.#runtimeUrl = runtimeUrl;
  }

  async grant(session: AccessFacts): Promise<SessionAccess> {
    const { session_id: id, expires_at: expiresAt } = session;
    const jwt = await this.#tokens.mint(
      {
        // The token identifies the account; the `user_id` of the request is informational.
        user_id: session.tenant_id,
        app_id: session.app_id,
        set_id: session.set_id,
        chat_session_id: id,
        cua_enabled: hasDesktop(session),
      },
      expiresAt,
    );
    return {
      chat_session_id: id,
      jwt,
      connect_url: `${this.#runtimeUrl()}/v1/sessions/${id}/ws`,
      expires_at: expiresAt.toISOString(),
    };
  }
}

/** Whether clients of this session may control a desktop. */
export function hasDesktop({ template }: Pick<SessionRow, 'template'>): boolean {
  return template === 'cua';
}
