import { type SandboxRecord, type SvcClient, SvcError } from '@svc/sdk';
import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/ids.ts';
import { integerBetween } from '../../arguments/parsers.ts';
import { connect } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';
import type { ChatOptions } from '../../sessions/chat.ts';

const HELP = `
Type a prompt and press Enter; a line that starts with ! is a shell command for the sandbox. An agent
that was created with a task takes no other: use --watch to follow it to its end. The exit code is 0 if
the agent, or else the last task, was completed.`;

const parseSeq = integerBetween(0, Number.MAX_SAFE_INTEGER, '--after 0');

interface Options {
  readonly after?: number;
  readonly task?: string;
  readonly watch?: boolean;
}

/** `svc sandbox attach`: talks to the agent of a sandbox, or watches it. */
export function attachCommand(): Command {
  return new Command('attach')
    .description('talk to the agent of a sandbox, or watch it')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .option('--after <seq>', 'first replay the frames after this one; 0 replays all', parseSeq)
    .option('--task <prompt>', 'run this one task, show its output, and exit')
    .option('--watch', 'show the frames until the agent ends; read no input')
    .addHelpText('after', HELP)
    .action(async (id: string, { after, ...options }: Options) => {
      await using client = await connect();
      const isDone = await attach(client, id, { ...options, afterSeq: after });
      if (!isDone) process.exitCode = 1;
    });
}

/** Whether the agent or its last task was completed. */
async function attach(client: SvcClient, id: string, options: ChatOptions): Promise<boolean> {
  const { chat } = await import('../../sessions/chat.ts');
  try {
    return (await chat((more) => client.sandboxes.connect(id, more), options)) === 'completed';
  } catch (error) {
    if (!isEnd(error)) throw error;
  }
  const record = await client.sandboxes.get(id);
  console.error(describe(record));
  return record.agent_status === 'completed';
}

/** Whether the connection ended with the agent, or with its sandbox. */
function isEnd(error: unknown): boolean {
  if (error instanceof CliError) return error.code === 'session_ended';
  return error instanceof SvcError && error.code === 'agent_ended' && error.status === 0;
}

function describe({ agent_status, agent_exit_code, state }: SandboxRecord): string {
  const code = agent_exit_code === undefined ? '' : ` with exit code ${agent_exit_code}`;
  return `the agent has ended: ${agent_status ?? 'unknown'}${code}; the sandbox is ${state}`;
}
