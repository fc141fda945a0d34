import { Command } from 'commander';
import { parseSessionId } from '../../arguments/ids.ts';
import { integerBetween } from '../../arguments/parsers.ts';
import { findAccess } from '../../sessions/find-access.ts';
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
      talk(async (client, signal) => (await findAccess(id, client, signal)).access, {
        afterSeq: after,
        task,
      }),
    );
}
