import { isActive } from '@svc/contract';
import type { SvcClient } from '@svc/sdk';
import { Command } from 'commander';
import { collectSandboxId, parseSandboxId } from '../../arguments/ids.ts';
import { withClient } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';

/** `svc sandbox pause`: keeps memory and disk, and frees the CPU. */
export function pauseCommand(): Command {
  return new Command('pause')
    .description('pause a sandbox: keeps its memory and disk, frees the CPU')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        const { state } = await client.sandboxes.pause(id, { signal });
        console.log(`${id} ${state}`);
      }),
    );
}

/** `svc sandbox resume` */
export function resumeCommand(): Command {
  return new Command('resume')
    .description('resume a paused sandbox')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        const { state } = await client.sandboxes.resume(id, { signal });
        console.log(`${id} ${state}`);
      }),
    );
}

/** `svc sandbox rm`: destroys sandboxes in any state and waits until they are gone. */
export function removeCommand(): Command {
  return new Command('rm')
    .description('destroy sandboxes')
    .argument('[ids...]', 'sandbox ids', collectSandboxId)
    .option('--all', 'destroy every sandbox of this account')
    .action((ids: string[] | undefined, { all }: { all?: boolean }) =>
      withClient(async (client, signal) => {
        const chosen = all ? await activeIds(client, signal) : (ids ?? []);
        if (chosen.length === 0 && !all) {
          throw new CliError('nothing_named', 'no sandbox was named', {
            next: 'name sandboxes, as in `svc sandbox rm vm_…`, or use --all',
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
