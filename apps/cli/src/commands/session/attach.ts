import type { SessionAccess, SvcClient } from '@svc/sdk';
import { Command } from 'commander';
import { parseSessionId } from '../../arguments/ids.ts';
import { integerBetween } from '../../arguments/parsers.ts';
import { CliError } from '../../output/errors.ts';
import { SessionAccessStore } from '../../sessions/access-store.ts';
import { TALK_HELP, TASK_OPTION, talk } from './talk.ts';

const parseSeq = integerBetween(0, Number.MAX_SAFE_INTEGER, '--after 0');

interface Options {
  readonly after?: number;
  readonly task?: string;
}

/** `svc session attach`: connects to an active session and talks to its agent. */
export function attachCommand(): Command {
  return new Command('attach')
    .description('connect to an active session and talk to its agent')
    .argument('<id>', 'session id', parseSessionId)
    .option('--after <seq>', 'first replay the frames after this one; 0 replays all', parseSeq)
    .option(...TASK_OPTION)
    .addHelpText('after', TALK_HELP)
    .action((id: string, { after, task }: Options) =>
      talk((client, signal) => accessOf(id, client, signal), { afterSeq: after, task }),
    );
}

async function accessOf(
  id: string,
  client: SvcClient,
  signal: AbortSignal,
): Promise<SessionAccess> {
  const { status } = await client.sessions.get(id, { signal });
  const access = status === 'active' ? await new SessionAccessStore().find(id) : undefined;
  if (access !== undefined) return access;
  const resume = `\`svc session resume ${id}\``;
  if (status !== 'active') {
    throw new CliError('session_not_active', `the session is over (${status})`, {
      next: `${resume} continues it`,
    });
  }
  throw new CliError('session_not_ours', 'no access token for the session is stored here', {
    next: `attach where it was started, or move it to a fresh sandbox with ${resume}`,
  });
}
