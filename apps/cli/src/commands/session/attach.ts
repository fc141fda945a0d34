import type { SessionAccess, SvcClient } from '@svc/sdk';
import { Command } from 'commander';
import { integerBetween } from '../../arguments/numbers.ts';
import { parseSessionId } from '../../arguments/session-id.ts';
import { CliError } from '../../output/cli-error.ts';
import { KeptAccess } from '../../sessions/kept-access.ts';
import { TALK_HELP, talk } from './talk.ts';

const parseSeq = integerBetween(0, Number.MAX_SAFE_INTEGER, '--after 0');

interface Options {
  readonly after?: number;
  readonly task?: string;
}

/** `svc session attach`: talks to the agent of a session that runs. */
export function attachCommand(): Command {
  return new Command('attach')
    .description('come back to a session that runs, and talk to its agent')
    .argument('<id>', 'session id', parseSessionId)
    .option('--after <seq>', 'show what came after this frame first; 0: all that is kept', parseSeq)
    .option('--task <prompt>', 'give it this one task, show what it does, and leave')
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
  const access = status === 'active' ? await new KeptAccess().find(id) : undefined;
  if (access !== undefined) return access;
  const resume = `\`svc session resume ${id}\``;
  if (status !== 'active') {
    throw new CliError('session_not_active', `the session is over (${status})`, {
      next: `${resume} goes on where it was`,
    });
  }
  throw new CliError('session_not_ours', 'the session was not started from here', {
    next: `attach where it was started; or ${resume}, which moves it to a fresh sandbox`,
  });
}
