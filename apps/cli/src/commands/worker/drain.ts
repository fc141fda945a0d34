import { Command } from 'commander';

/** `svc worker drain`: ends the sandboxes of a worker in order, then the worker. */
export function drainCommand(): Command {
  return new Command('drain')
    .description('end the sandboxes of a worker in order, then the worker, and wait for that')
    .argument('[worker]', 'id of a worker of the fleet; default: the one on this data directory')
    .action(async (workerId?: string) => {
      if (workerId === undefined) {
        const { loadConfig } = await import('@svc/config');
        const { drainWorker } = await import('../../service/stop/drain-worker.ts');
        await drainWorker(loadConfig());
        return;
      }
      const { drainFleetWorker } = await import('../../service/fleet/drain-fleet-worker.ts');
      await drainFleetWorker(workerId);
    });
}
