import { Command } from 'commander';
import { endProcess } from '../end-process.ts';

/** `svc runtime`: the WebSockets of sessions alone, for a fleet. */
export function runtimeCommand(): Command {
  return new Command('runtime')
    .description('run only a runtime host, as one of a fleet; logs to standard output')
    .action(async () => {
      const { runRuntime } = await import('../service/fleet/runtime.ts');
      endProcess(await runRuntime());
    });
}
