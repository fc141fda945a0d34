import { DEFAULT_APP, DEFAULT_SET, hasDesktop, type SessionAccess, uuidOf } from '@svc/contract';
import type { SessionTokens } from '@svc/service-kit';
import type { SandboxRow, SessionRow } from '@svc/store';

/** The facts that access to a session is derived from. */
export type AccessFacts = Pick<
  SessionRow,
  'session_id' | 'tenant_id' | 'app_id' | 'set_id' | 'template' | 'expires_at'
>;

/** The facts for the agent of a sandbox outside sessions, which is reached under the UUID in the sandbox's id. */
export function sandboxFacts(
  row: Pick<SandboxRow, 'vm_id' | 'tenant_id' | 'template' | 'created_at' | 'max_lifetime_seconds'>,
): AccessFacts {
  return {
    session_id: uuidOf(row.vm_id),
    tenant_id: row.tenant_id,
    app_id: DEFAULT_APP,
    set_id: DEFAULT_SET,
    template: row.template,
    expires_at: new Date(row.created_at.getTime() + row.max_lifetime_seconds * 1000),
  };
}

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
        cua_enabled: hasDesktop(session.template),
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
