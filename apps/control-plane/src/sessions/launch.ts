import { LIMITS } from '@svc/contract';
import type { IdempotencyHold, SessionRow } from '@svc/store';
import type { SessionSecrets } from '../agents/stored-secrets.ts';
import type { SandboxStarter } from '../sandboxes/start.ts';

/** The start of a session. */
export interface Launch {
  readonly session: SessionRow;
  readonly bundles: SessionSecrets['bundles'];
  readonly ttlSeconds: number;
  readonly resumed: boolean;
  /** The idempotency key of the request. */
  readonly hold?: IdempotencyHold | undefined;
}

/** The lifetime of a session, clamped to the cap. */
export function ttlOf({ ttl_seconds }: { readonly ttl_seconds?: number }): number {
  return Math.min(ttl_seconds ?? LIMITS.sessionTtlSecondsDefault, LIMITS.sessionTtlSecondsCap);
}

/** Starts the sandbox of a session with its agent. A failure leaves nothing behind. */
export async function launch(
  starter: SandboxStarter,
  { session, bundles, ttlSeconds, resumed, hold }: Launch,
  signal: AbortSignal,
): Promise<void> {
  const { session_id: sessionId, generation, tenant_id: tenantId } = session;
  const placed = {
    kind: session.agent,
    ...(session.agent_version === null ? {} : { version: session.agent_version }),
    mode: 'session' as const,
    vendor: session.vendor,
    model: session.model,
    wire_version: 2 as const,
    session: {
      chat_session_id: sessionId,
      generation,
      user_id: tenantId,
      app_id: session.app_id,
      set_id: session.set_id,
      resumed,
    },
  };
  const sandbox = {
    vmId: session.vm_id,
    tenantId,
    request: {
      template: session.template,
      ...session.size,
      idle_timeout_seconds: LIMITS.sessionIdleSeconds,
      max_lifetime_seconds: ttlSeconds,
      metadata: { user_id: session.user_id },
    },
    agent: {
      placed,
      input: session.app === null ? {} : { app: session.app },
      secrets: {
        kind: 'session' as const,
        tenantId,
        bundles,
        baseUrl: session.base_url ?? undefined,
      },
    },
    session: { sessionId, generation },
    hold,
  };
  await starter.start(sandbox, signal);
}
