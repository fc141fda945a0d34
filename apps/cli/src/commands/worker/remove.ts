import { Command } from 'commander';
import { CliError } from '../../output/errors.ts';

/** `svc worker rm` */
export function removeCommand(): Command {
  return new Command('rm')
    .description('remove a worker that has gone away from the list')
    .argument('<worker>', 'id of the worker')
    .action(async (workerId: string) => {
      const { unknownWorker, withFleet } = await import('../../service/fleet/operator-fleet.ts');
      await withFleet(async (fleet) => {
        if (await fleet.remove(workerId)) return;
        const worker = (await fleet.list()).find((one) => one.worker_id === workerId);
        if (worker === undefined) throw unknownWorker(workerId);
        throw new CliError(
          'worker_in_use',
          `${workerId} is ${worker.standing} and has ${worker.sandboxes} sandboxes`,
          {
            next: `run \`svc worker drain ${workerId}\`, and try again half a minute after it ended`,
          },
        );
      });
      console.log(`${workerId} is removed; it is back if it registers again`);
    });
}
