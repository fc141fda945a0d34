import { sql } from 'kysely';
import type { SessionRow } from '../../schema.ts';

/** All columns except the conversation, which can be large. */
export const SESSION_COLUMNS = [
  'session_id',
  'tenant_id',
  'status',
  'generation',
  'vm_id',
  'agent',
  'agent_version',
  'app_id',
  'set_id',
  'app',
  'template',
  'size',
  'vendor',
  'requested_model',
  'base_url',
  'model',
  'secrets',
  'user_id',
  'busy_by',
  'busy_until',
  'last_seq',
  'commit_seq',
  'numbered_by',
  'base_seq',
  'reserved_seq',
  'files_id',
  'kept_bytes',
  'created_at',
  'expires_at',
  'ended_at',
  'erase_requested_at',
  'erased_at',
] as const satisfies (keyof SessionRow)[];

/** The time this many seconds from now, by the database's clock. */
export function fromNow(seconds: number) {
  return sql<Date>`now() + make_interval(secs => ${seconds})`;
}
