import { Command } from 'commander';
import { exitWith } from '../process-lifetime.ts';
import { revokeCommand, runtimeListCommand, tokenCommand } from './enrolment.ts';

/** `svc control-plane`: runs only the public API, as part of a fleet. */
export function controlPlaneCommand(): Command {
  return new Command('control-plane')
    .description('run only a control plane, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runControlPlane } = await import('../service/fleet/components.ts');
      exitWith(await runControlPlane());
    });
}

/**
 * `svc runtime`: runs only a runtime host, which serves the WebSockets of sessions, as part of a fleet; its commands operate
 * the runtime hosts of a fleet.
 */
export function runtimeCommand(): Command {
  return new Command('runtime')
    .description('run only a runtime host, as part of a fleet; logs to standard output')
    .action(async () => {
      const { runRuntimeHost } = await import('../service/fleet/components.ts');
      exitWith(await runRuntimeHost());
    })
    .addCommand(runtimeListCommand())
    .addCommand(tokenCommand('runtime'))
    .addCommand(revokeCommand('runtime'));
}
