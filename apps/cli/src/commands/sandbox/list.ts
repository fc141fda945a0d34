import type { SandboxRecord } from '@svc/sdk';
import { Command } from 'commander';
import { formatTable } from '../../output/table.ts';
import { formatDuration, formatMib } from '../../output/units.ts';
import { withClient } from '../with-client.ts';

/** `svc sandbox list`: the account's sandboxes, those that ended in the last minutes too. */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the sandboxes of this account')
    .option('--json', 'print the answer as JSON')
    .action(({ json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const { sandboxes, partial } = await client.sandboxes.list({ signal });
        if (json) {
          console.log(JSON.stringify({ sandboxes, partial }));
          return;
        }
        console.log(formatTable([HEADING, ...sandboxes.map(rowOf)]));
        if (partial)
          console.error('svc: a worker did not answer; its sandboxes are shown as last known');
      }),
    );
}

const HEADING = ['ID', 'STATE', 'TEMPLATE', 'CPUS', 'MEMORY', 'AGE', 'ENDED BY'];

function rowOf(sandbox: SandboxRecord): string[] {
  const until = sandbox.ended_at === undefined ? Date.now() : Date.parse(sandbox.ended_at);
  return [
    sandbox.vm_id,
    sandbox.state,
    sandbox.template,
    String(sandbox.vcpu),
    formatMib(sandbox.memory_mib),
    formatDuration(Math.max(0, until - Date.parse(sandbox.created_at))),
    sandbox.end_reason ?? '',
  ];
}
