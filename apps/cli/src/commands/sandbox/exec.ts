import { once } from 'node:events';
import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/ids.ts';
import { collectPair, parseDuration } from '../../arguments/parsers.ts';
import { withClient } from '../../connection/client.ts';

interface Options {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly timeout?: number;
}

/** `svc sandbox exec`: streams the output of a command and exits with its code. Ctrl-C kills the command. */
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
            if (event.timed_out)
              console.error(`svc: the command timed out after ${timeout} s and was killed`);
            if (event.truncated)
              console.error('svc: the output was too long and has been truncated');
          } else if (!process[event.type].write(event.data)) {
            await once(process[event.type], 'drain');
          }
        }
      }),
    );
}

const NEEDS_NO_QUOTES = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Builds a shell command: a single argument is used unchanged, several are a program and its quoted arguments. */
export function shellCommand([first, ...others]: readonly string[]): string {
  // Option parsing has already ended at the sandbox id, so a `--` after it is still in the list.
  const words = first === undefined || first === '--' ? others : [first, ...others];
  if (words.length === 1) return words[0] ?? '';
  return words
    .map((word) => (NEEDS_NO_QUOTES.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}
