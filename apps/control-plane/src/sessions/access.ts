import type { SessionAccess } from '@svc/contract';
import type { SessionTokens } from '@svc/service-kit';
import type { SessionRow } from '@svc/store';

/** What of a session its access is made from. */
export type AccessFacts = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'app_id' | 'set_id' | 'template' | 'expires_at'
>;

/** Hands out what opens the WebSocket of a session. The same facts give the same token. */
export class SessionAccessDesk {
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
        // Identity is the account's; the `user_id` of the request only attributes.
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
