import { Command } from 'commander';
import { exitWith } from '../process-lifetime.ts';

/** `svc control-plane`: runs only the public API, as part of a fleet. */
export function controlPlaneCommand(): Command {
  return new Command('control-plane')
    .description('run only a control plane, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runControlPlane } = await import('../service/fleet/components.ts');
      exitWith(await runControlPlane());
    });
}

/** `svc runtime`: runs only a runtime host, which serves the WebSockets of sessions, as part of a fleet. */
export function runtimeCommand(): Command {
  return new Command('runtime')
    .description('run only a runtime host, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runRuntimeHost } = await import('../service/fleet/components.ts');
      exitWith(await runRuntimeHost());
    });
}

/** `svc worker`: runs only the worker of this machine, as part of a fleet. */
export function workerCommand(): Command {
  return new Command('worker')
    .description('run only the worker of this machine, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runWorker } = await import('../service/fleet/components.ts');
      exitWith(await runWorker());
    })
    .addCommand(workerDrainCommand());
}

/** `svc worker drain`: ends the sandboxes of this machine's worker in order, then the worker. */
function workerDrainCommand(): Command {
  return new Command('drain')
    .description('end the sandboxes of the worker that runs on the data directory, then the worker')
    .action(async () => {
      const { loadConfig } = await import('@svc/config');
      const { drainWorker } = await import('../service/stop/drain-worker.ts');
      await drainWorker(loadConfig());
    });
}
