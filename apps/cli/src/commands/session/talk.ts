import type { SessionAccess, SvcClient } from '@svc/sdk';
import { connect } from '../../connection/client.ts';
import { withInterrupt } from '../../process-lifetime.ts';
import { SessionAccessStore } from '../../sessions/access-store.ts';
import type { ChatOptions } from '../../sessions/chat.ts';

/** Flags and description of the option `--task`, shared by the commands that talk to an agent. */
export const TASK_OPTION = [
  '--task <prompt>',
  'run this one task, show its output, and exit',
] as const;

/** Help text shared by the commands that talk to an agent. */
export const TALK_HELP = `
Type a prompt and press Enter; a line that starts with ! is a shell command for the sandbox. Ctrl-C
interrupts the agent; Ctrl-D, or Ctrl-C pressed twice, leaves the chat. The session continues without
you until it has been idle for 15 minutes. If standard input is not a terminal, each of its lines is a
prompt. The agent's text goes to standard output, everything else to standard error. The exit code is 0
if the last task was completed.`;

/** Opens a session, stores its access data for `svc session attach`, and chats until the user leaves. */
export async function talk(
  open: (client: SvcClient, signal: AbortSignal) => Promise<SessionAccess>,
  options: ChatOptions,
): Promise<void> {
  const { chat } = await import('../../sessions/chat.ts');
  await using client = await connect();
  const access = await withInterrupt((signal) => open(client, signal));
  await new SessionAccessStore().save(access);
  const { chat_session_id: id } = access;
  console.error(`session ${id}`);
  const outcome = await chat((more) => client.sessions.connect(access, more), options);
  console.error(
    `disconnected; \`svc session attach ${id}\` reconnects, \`svc session rm ${id}\` ends the session`,
  );
  if (outcome !== 'completed') process.exitCode = 1;
}
