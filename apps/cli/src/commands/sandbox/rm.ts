import { isActive } from '@svc/contract';
import type { SvcClient } from '@svc/sdk';
import { Command } from 'commander';
import { collectSandboxId } from '../../arguments/sandbox-id.ts';
import { CliError } from '../../output/cli-error.ts';
import { withClient } from '../with-client.ts';

/** `svc sandbox rm`: destroys sandboxes, whatever their state, and waits until they are gone. */
export function rmCommand(): Command {
  return new Command('rm')
    .description('destroy sandboxes')
    .argument('[ids...]', 'sandbox ids', collectSandboxId)
    .option('--all', 'destroy every sandbox of this account')
    .action((ids: string[] | undefined, { all }: { all?: boolean }) =>
      withClient(async (client, signal) => {
        const chosen = all ? await activeIds(client, signal) : (ids ?? []);
        if (chosen.length === 0 && !all) {
          throw new CliError('nothing_named', 'no sandbox is named', {
            next: 'name some, as in `svc sandbox rm vm_…`, or use --all',
          });
        }
        for (const id of chosen) {
          const { state } = await client.sandboxes.delete(id, { signal });
          console.log(`${id} ${state}`);
        }
      }),
    );
}

async function activeIds(client: SvcClient, signal: AbortSignal): Promise<string[]> {
  const { sandboxes } = await client.sandboxes.list({ signal });
  return sandboxes.filter(({ state }) => isActive(state)).map(({ vm_id }) => vm_id);
}
