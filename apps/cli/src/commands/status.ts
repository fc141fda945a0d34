import { Command } from 'commander';

/** `svc status`: where the service of the data directory is and what it has. Exit code 3 when none runs. */
export function statusCommand(): Command {
  return new Command('status')
    .description('show the service on this machine; exit code 3 when none runs')
    .option('--json', 'print it as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { serviceStatus } = await import('../service/status/service-status.ts');
      const config = loadConfig();
      const status = await serviceStatus(config);
      if (json) {
        console.log(JSON.stringify(status, null, 2));
      } else {
        const { statusText } = await import('../service/status/status-text.ts');
        console.log(statusText(status));
      }
      if (status.state === 'stopped') process.exitCode = 3;
    });
}
