import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/sandbox-id.ts';
import { withClient } from '../with-client.ts';

/** `svc sandbox pause`: keeps memory and disk, frees the CPU. */
export function pauseCommand(): Command {
  return new Command('pause')
    .description('freeze a sandbox: memory and disk stay, the CPU is free')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        const { state } = await client.sandboxes.pause(id, { signal });
        console.log(`${id} ${state}`);
      }),
    );
}
