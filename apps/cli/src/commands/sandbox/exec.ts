import { once } from 'node:events';
import { Command } from 'commander';
import { parseDuration } from '../../arguments/duration.ts';
import { collectPair } from '../../arguments/pairs.ts';
import { parseSandboxId } from '../../arguments/sandbox-id.ts';
import { shellCommand } from '../../arguments/shell.ts';
import { withClient } from '../with-client.ts';

interface Options {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeout?: number;
}

/** `svc sandbox exec`: streams the command's output and exits with its code. Ctrl-C kills the command. */
export function execCommand(): Command {
  return new Command('exec')
    .description(
      'run a shell command and exit with its code: svc sandbox exec [options] vm_… -- ls -la /',
    )
    .argument('<id>', 'sandbox id', parseSandboxId)
    .argument('<command...>', 'one shell command, or a program and its arguments')
    .option('--cwd <path>', 'working directory')
    .option('-e, --env <NAME=value>', 'environment variable; repeatable', collectPair)
    .option('--timeout <duration>', 'kill the command after this long, as in 90s', parseDuration)
    .passThroughOptions()
    .action((id: string, words: string[], { cwd, env, timeout }: Options) =>
      withClient(async (client, signal) => {
        const request = {
          command: shellCommand(words),
          ...(cwd === undefined ? {} : { cwd }),
          ...(env === undefined ? {} : { env }),
          ...(timeout === undefined ? {} : { timeout_seconds: timeout }),
        };
        for await (const event of client.sandboxes.execStream(id, request, { signal })) {
          if (event.type === 'exit') {
            process.exitCode = event.exit_code;
            if (event.timed_out) console.error(`svc: the command was killed after ${timeout} s`);
            if (event.truncated) console.error('svc: the output was too long and is cut');
          } else if (!process[event.type].write(event.data)) {
            await once(process[event.type], 'drain');
          }
        }
      }),
    );
}
