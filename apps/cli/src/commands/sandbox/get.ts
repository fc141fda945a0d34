import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/sandbox-id.ts';
import { withClient } from '../with-client.ts';

/** `svc sandbox get`: the whole record. */
export function getCommand(): Command {
  return new Command('get')
    .description('show everything about a sandbox, as JSON')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        console.log(JSON.stringify(await client.sandboxes.get(id, { signal }), null, 2));
      }),
    );
}
