import type { FleetWorker } from '@svc/store';
import { Command } from 'commander';
import { CliError } from '../../output/errors.ts';

/** `svc worker rm` */
export function removeCommand(): Command {
  return new Command('rm')
    .description('remove a worker that has gone away from the list')
    .argument('<worker>', 'id of the worker')
    .option('--lost', 'give up the sandboxes of a silent worker, which does not come back')
    .action(async (workerId: string, { lost = false }: { readonly lost?: boolean }) => {
      const { unknownWorker, withFleet } = await import('../../service/fleet/operator-fleet.ts');
      await withFleet(async (fleet) => {
        if (lost ? await fleet.giveUp(workerId) : await fleet.remove(workerId)) return;
        const worker = (await fleet.list()).find((one) => one.worker_id === workerId);
        if (worker === undefined) throw unknownWorker(workerId);
        throw inUse(worker);
      });
      console.log(`${workerId} is removed; it is back if it registers again`);
    });
}

function inUse({ worker_id: id, standing, sandboxes }: FleetWorker): CliError {
  const next =
    standing === 'unreachable'
      ? `start it again to keep them, or give them up with \`svc worker rm --lost ${id}\``
      : `run \`svc worker drain ${id}\`, and try again half a minute after it ended`;
  return new CliError('worker_in_use', `${id} is ${standing} and has ${sandboxes} sandboxes`, {
    next,
  });
}
