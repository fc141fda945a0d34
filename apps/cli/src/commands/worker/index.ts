import { Command } from 'commander';
import { exitWith } from '../../process-lifetime.ts';
import { revokeCommand, tokenCommand } from '../enrolment.ts';
import { cordonCommand, uncordonCommand } from './cordon.ts';
import { drainCommand } from './drain.ts';
import { listCommand } from './list.ts';
import { quarantineCommand } from './quarantine.ts';
import { removeCommand } from './remove.ts';

/** `svc worker`: runs only the worker of this machine, as part of a fleet; its commands operate the workers of a fleet. */
export function workerCommand(): Command {
  return new Command('worker')
    .description('run only the worker of this machine, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runWorker } = await import('../../service/fleet/components.ts');
      exitWith(await runWorker());
    })
    .addCommand(listCommand())
    .addCommand(cordonCommand())
    .addCommand(uncordonCommand())
    .addCommand(drainCommand())
    .addCommand(removeCommand())
    .addCommand(tokenCommand('worker'))
    .addCommand(revokeCommand('worker'))
    .addCommand(quarantineCommand());
}
