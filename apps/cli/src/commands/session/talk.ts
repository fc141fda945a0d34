import type { SessionAccess, SvcClient } from '@svc/sdk';
import { connect } from '../../connection/resolve.ts';
import { withInterrupt } from '../../interrupt.ts';
import type { ChatOptions } from '../../sessions/chat.ts';
import { KeptAccess } from '../../sessions/kept-access.ts';

/** How the commands that talk to an agent explain themselves. */
export const TALK_HELP = `
Type a prompt and press Enter; a line that starts with ! is a command for the sandbox. Ctrl-C interrupts the
agent, twice leaves, and so does Ctrl-D. The session goes on without you until it is idle for 15 minutes.
Without a terminal, every line of standard input is a prompt. The agent's words go to standard output,
everything else to standard error. The exit code is 0 when the last task was completed.`;

/** Gets what opens a session, keeps it for `attach`, and talks to the agent until that is left. */
export async function talk(
  open: (client: SvcClient, signal: AbortSignal) => Promise<SessionAccess>,
  options: ChatOptions,
): Promise<void> {
  const { chat } = await import('../../sessions/chat.ts');
  await using client = await connect();
  const access = await withInterrupt((signal) => open(client, signal));
  await new KeptAccess().keep(access);
  const { chat_session_id: id } = access;
  console.error(`session ${id}`);
  const outcome = await chat(client, access, options);
  console.error(`left; \`svc session attach ${id}\` comes back, \`svc session rm ${id}\` ends it`);
  if (outcome !== 'completed') process.exitCode = 1;
}
