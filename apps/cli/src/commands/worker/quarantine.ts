import type { QuarantinedSandbox, ReleaseRefusal } from '@svc/store';
import { Command } from 'commander';
import { CliError } from '../../output/errors.ts';
import { formatAge, formatMib, formatTable } from '../../output/format.ts';

const HEADING = ['SANDBOX', 'WORKER', 'ACCOUNT', 'TEMPLATE', 'MEMORY', 'HELD FOR', 'ENDS', 'SEEN'];

const REFUSALS: Readonly<Record<Exclude<ReleaseRefusal, 'unknown'>, string>> = {
  not_reported: 'its worker has not said yet how it was made',
  of_session:
    'it belongs to a session, which goes on from what the database has when it is resumed',
  no_tenant: 'the database has lost its account, too',
  id_in_use: 'the database has an earlier sandbox with this id',
};

/** `svc worker quarantine`: the sandboxes that a restored database does not know. */
export function quarantineCommand(): Command {
  return new Command('quarantine')
    .description('decide about sandboxes that a restored database does not know')
    .addCommand(listCommand())
    .addCommand(releaseCommand())
    .addCommand(endCommand());
}

function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the sandboxes in quarantine; needs the database of the control planes')
    .option('--json', 'print the sandboxes as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { withQuarantine } = await import('../../service/fleet/operator-fleet.ts');
      const held = await withQuarantine((quarantine) => quarantine.list());
      if (json) console.log(JSON.stringify(held, null, 2));
      else console.log(formatTable([HEADING, ...held.map(cellsOf)]));
    });
}

function releaseCommand(): Command {
  return new Command('release')
    .description(
      'give a sandbox back to its account; one whose lifetime is over then ends in order',
    )
    .argument('<sandbox>', 'id of the sandbox')
    .action(async (vmId: string) => {
      const { withQuarantine } = await import('../../service/fleet/operator-fleet.ts');
      const refusal = await withQuarantine((quarantine) => quarantine.release(vmId));
      if (refusal === 'unknown') throw notQuarantined(vmId);
      if (refusal !== undefined) {
        throw new CliError('not_released', `${vmId} cannot be released: ${REFUSALS[refusal]}`, {
          next:
            refusal === 'not_reported'
              ? 'run the same command again in ten seconds'
              : `\`svc worker quarantine end ${vmId}\` ends it`,
        });
      }
      console.log(`${vmId} goes on with the next heartbeat of its worker`);
    });
}

function endCommand(): Command {
  return new Command('end')
    .description('end a sandbox in quarantine, with everything in it')
    .argument('<sandbox>', 'id of the sandbox')
    .action(async (vmId: string) => {
      const { withQuarantine } = await import('../../service/fleet/operator-fleet.ts');
      if (!(await withQuarantine((quarantine) => quarantine.end(vmId)))) throw notQuarantined(vmId);
      console.log(`${vmId} ends with the next heartbeat of its worker`);
    });
}

function cellsOf(held: QuarantinedSandbox): string[] {
  const { report } = held;
  return [
    held.vm_id,
    held.worker_id,
    held.tenant_id,
    report.template,
    formatMib(report.memory_mib),
    formatAge(held.quarantined_at.toISOString()),
    held.end_requested ? 'now' : held.ends_at.toISOString().slice(0, 16),
    `${formatAge(held.seen_at.toISOString())} ago`,
  ];
}

function notQuarantined(vmId: string): CliError {
  return new CliError('not_in_quarantine', `${vmId} is not in quarantine`, {
    next: '`svc worker quarantine ls` lists those that are',
  });
}
