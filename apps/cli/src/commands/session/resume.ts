import { Command } from 'commander';
import { parseDuration } from '../../arguments/duration.ts';
import { parseSessionId } from '../../arguments/session-id.ts';
import { TALK_HELP, talk } from './talk.ts';

interface Options {
  readonly ttl?: number;
  readonly task?: string;
}

/** `svc session resume`: a session goes on in a fresh sandbox, with its conversation and files. */
export function resumeSessionCommand(): Command {
  return new Command('resume')
    .description('go on with a session in a fresh sandbox, with its conversation and its files')
    .argument('<id>', 'session id', parseSessionId)
    .option('--ttl <duration>', 'longest life, as in 2h; default 1h', parseDuration)
    .option('--task <prompt>', 'give it this one task, show what it does, and leave')
    .addHelpText('after', TALK_HELP)
    .action((id: string, { ttl, task }: Options) =>
      talk(
        async (client, signal) => {
          const more = ttl === undefined ? {} : { ttl_seconds: ttl };
          const resumed = await client.sessions.resume(
            { chat_session_id: id, ...more },
            { signal },
          );
          console.error(`it was ${resumed.resumed_from.previous_status}`);
          return resumed;
        },
        { task },
      ),
    );
}
