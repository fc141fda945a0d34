import { Command } from 'commander';
import { endProcess } from '../end-process.ts';

/** `svc worker`: the sandboxes of this machine alone, for a fleet. */
export function workerCommand(): Command {
  return new Command('worker')
    .description('run only the worker of this machine, as one of a fleet; logs to standard output')
    .action(async () => {
      const { runWorker } = await import('../service/fleet/worker.ts');
      endProcess(await runWorker());
    });
}
