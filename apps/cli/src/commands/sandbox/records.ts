import type { SandboxRecord } from '@svc/sdk';
import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/ids.ts';
import { withClient } from '../../connection/client.ts';
import { formatAge, formatMib, formatTable } from '../../output/format.ts';

/** `svc sandbox get`: shows the whole record of a sandbox. */
export function getCommand(): Command {
  return new Command('get')
    .description('show the record of a sandbox as JSON')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .action((id: string) =>
      withClient(async (client, signal) => {
        console.log(JSON.stringify(await client.sandboxes.get(id, { signal }), null, 2));
      }),
    );
}

const HEADING = ['ID', 'STATE', 'TEMPLATE', 'CPUS', 'MEMORY', 'AGE', 'ENDED BY'];

/** `svc sandbox list`: shows the sandboxes of the account, including those that ended recently. */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the sandboxes of this account')
    .option('--json', 'print the response as JSON')
    .action(({ json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const { sandboxes, partial } = await client.sandboxes.list({ signal });
        if (json) {
          console.log(JSON.stringify({ sandboxes, partial }));
          return;
        }
        console.log(formatTable([HEADING, ...sandboxes.map(rowOf)]));
        if (partial)
          console.error(
            'svc: a worker did not respond; its sandboxes are shown in their last known state',
          );
      }),
    );
}

function rowOf(sandbox: SandboxRecord): string[] {
  return [
    sandbox.vm_id,
    sandbox.state,
    sandbox.template,
    String(sandbox.vcpu),
    formatMib(sandbox.memory_mib),
    formatAge(sandbox.created_at, sandbox.ended_at),
    sandbox.end_reason ?? '',
  ];
}
