import type { SessionRecord, SessionStatus } from '@svc/contract';
import type { SeenSession } from '@svc/store';

/**
 * The status of a session as its owner sees it: one that has ended and is being started again is active. Clients would give it
 * up otherwise, such as all but the first of those that come back to a session whose worker was lost.
 */
export function statusOf(session: SeenSession): SessionStatus {
  const { status, is_held: isHeld, erase_requested_at: eraseRequestedAt } = session;
  return isHeld && eraseRequestedAt === null ? 'active' : status;
}

/** The public record of a session. */
export function toSessionRecord(row: SeenSession): SessionRecord {
  const status = statusOf(row);
  const endedAt = status === 'active' ? null : row.ended_at;
  return {
    chat_session_id: row.session_id,
    status,
    vm_id: row.vm_id,
    agent: {
      kind: row.agent,
      ...(row.agent_version === null ? {} : { version: row.agent_version }),
    },
    app: { id: row.app_id, set_id: row.set_id },
    template: row.template,
    ...row.size,
    llm: { vendor: row.vendor, model: row.model },
    user_id: row.user_id,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    ...(endedAt === null ? {} : { ended_at: endedAt.toISOString() }),
    ...(row.erased_at === null ? {} : { erased_at: row.erased_at.toISOString() }),
  };
}
