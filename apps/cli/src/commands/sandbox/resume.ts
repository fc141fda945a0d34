import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/sandbox-id.ts';
import { withClient } from '../with-client.ts';

/** `svc sandbox resume`: lets a paused sandbox go on. */
export function resumeCommand(): Command {
  return new Command('resume')
    .description('let a paused sandbox go on')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        const { state } = await client.sandboxes.resume(id, { signal });
        console.log(`${id} ${state}`);
      }),
    );
}
