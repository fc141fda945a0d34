import { Command } from 'commander';

/** `svc worker cordon` */
export function cordonCommand(): Command {
  return new Command('cordon')
    .description('place no more sandboxes on a worker; those that it has stay')
    .argument('<worker>', 'id of the worker')
    .action(async (workerId: string) => {
      const { unknownWorker, withFleet } = await import('../../service/fleet/operator-fleet.ts');
      if (!(await withFleet((fleet) => fleet.cordon(workerId)))) throw unknownWorker(workerId);
      console.log(
        `${workerId} gets no new sandboxes; \`svc worker uncordon ${workerId}\` undoes it`,
      );
    });
}

/** `svc worker uncordon` */
export function uncordonCommand(): Command {
  return new Command('uncordon')
    .description('place sandboxes on a worker again')
    .argument('<worker>', 'id of the worker')
    .action(async (workerId: string) => {
      const { unknownWorker, withFleet } = await import('../../service/fleet/operator-fleet.ts');
      if (!(await withFleet((fleet) => fleet.uncordon(workerId)))) throw unknownWorker(workerId);
      console.log(`${workerId} takes sandboxes`);
    });
}
