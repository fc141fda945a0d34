import { Command } from 'commander';
import { endProcess } from '../end-process.ts';

/** `svc control-plane`: the public API alone, for a fleet. */
export function controlPlaneCommand(): Command {
  return new Command('control-plane')
    .description('run only the control plane, as one of a fleet; logs to standard output')
    .action(async () => {
      const { runControlPlane } = await import('../service/fleet/control-plane.ts');
      endProcess(await runControlPlane());
    });
}
