import type { SessionAccess, SessionRecord, SvcClient } from '@svc/sdk';
import { CliError } from '../output/errors.ts';
import { SessionAccessStore } from './access-store.ts';

/** A session that is active, and the access to it that is stored here. @throws CliError when either is not so */
export async function findAccess(
  id: string,
  client: SvcClient,
  signal: AbortSignal,
): Promise<{ readonly record: SessionRecord; readonly access: SessionAccess }> {
  const record = await client.sessions.get(id, { signal });
  const { status } = record;
  const access = status === 'active' ? await new SessionAccessStore().find(id) : undefined;
  if (access !== undefined) return { record, access };
  const resume = `\`svc session resume ${id}\``;
  if (status !== 'active') {
    throw new CliError('session_not_active', `the session is over (${status})`, {
      next: `${resume} continues it`,
    });
  }
  throw new CliError('session_not_ours', 'no access token for the session is stored here', {
    next: `use the machine where it was started, or move it to a fresh sandbox with ${resume}`,
  });
}
