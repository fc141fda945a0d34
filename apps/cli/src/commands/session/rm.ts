import { Command } from 'commander';
import { collectSessionId } from '../../arguments/session-id.ts';
import { KeptAccess } from '../../sessions/kept-access.ts';
import { withClient } from '../with-client.ts';

/** `svc session rm`: ends sessions, and waits until their sandboxes are gone. */
export function removeSessionsCommand(): Command {
  return new Command('rm')
    .description('end sessions; each can be resumed')
    .argument('<ids...>', 'session ids', collectSessionId)
    .action((ids: string[]) =>
      withClient(async (client, signal) => {
        const kept = new KeptAccess();
        for (const id of ids) {
          const { status } = await client.sessions.delete(id, { signal });
          await kept.forget(id);
          console.log(`${id} ${status}`);
        }
      }),
    );
}
