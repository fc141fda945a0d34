import { Command } from 'commander';
import { parseSessionId } from '../../arguments/ids.ts';
import { parseDuration } from '../../arguments/parsers.ts';
import { TALK_HELP, TASK_OPTION, talk } from './talk.ts';

interface Options {
  readonly ttl?: number;
  readonly task?: string;
}

/** `svc session resume`: continues a session in a fresh sandbox, with its conversation and files. */
export function resumeCommand(): Command {
  return new Command('resume')
    .description('continue a session in a fresh sandbox, with its conversation and its files')
    .argument('<id>', 'session id', parseSessionId)
    .option('--ttl <duration>', 'maximum lifetime, as in 2h; default: 1h', parseDuration)
    .option(...TASK_OPTION)
    .addHelpText('after', TALK_HELP)
    .action((id: string, { ttl, task }: Options) =>
      talk(
        async (client, signal) => {
          const more = ttl === undefined ? {} : { ttl_seconds: ttl };
          const resumed = await client.sessions.resume(
            { chat_session_id: id, ...more },
            { signal },
          );
          console.error(`previous status: ${resumed.resumed_from.previous_status}`);
          return resumed;
        },
        { task },
      ),
    );
}
