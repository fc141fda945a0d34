import type { SessionRecord } from '@svc/contract';
import type { SessionRow } from '@svc/store';

/** The public record of a session. */
export function toSessionRecord(row: SessionRow): SessionRecord {
  return {
    chat_session_id: row.session_id,
    status: row.status,
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
    ...(row.ended_at === null ? {} : { ended_at: row.ended_at.toISOString() }),
    ...(row.erased_at === null ? {} : { erased_at: row.erased_at.toISOString() }),
  };
}
