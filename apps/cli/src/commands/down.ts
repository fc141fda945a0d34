import { Command } from 'commander';

/** `svc down`: stops the service of the data directory, and cleans up after one that crashed. */
export function downCommand(): Command {
  return new Command('down')
    .description('stop the service on this machine and end its sandboxes')
    .option('--keep-sandboxes', 'leave the sandboxes alive for the next start, as for an upgrade')
    .action(async ({ keepSandboxes = false }: { keepSandboxes?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { stopService } = await import('../service/stop/stop-service.ts');
      await stopService(loadConfig(), { keepSandboxes });
    });
}
