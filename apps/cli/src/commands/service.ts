import { Command } from 'commander';
import { exitWith } from '../process-lifetime.ts';

/** `svc up`: runs the whole service on this machine until Ctrl-C, or in the background with `--detach`. */
export function upCommand(): Command {
  return new Command('up')
    .description('start everything on this machine and serve until Ctrl-C')
    .option('-d, --detach', 'return once the service is ready; `svc down` stops it')
    .action(async ({ detach }: { detach?: boolean }) => {
      const { loadServiceConfig } = await import('@svc/config');
      const config = loadServiceConfig();
      if (detach) {
        const { startDetached } = await import('../service/detach.ts');
        await startDetached(config);
        return;
      }
      const { runInForeground } = await import('../service/foreground.ts');
      exitWith(await runInForeground(config));
    });
}

/** `svc down`: stops the service of the data directory, and cleans up after one that crashed. */
export function downCommand(): Command {
  return new Command('down')
    .description('stop the service on this machine and end its sandboxes')
    .option('--keep-sandboxes', 'keep the sandboxes running for the next start, as for an upgrade')
    .action(async ({ keepSandboxes = false }: { keepSandboxes?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { stopService } = await import('../service/stop/stop-service.ts');
      await stopService(loadConfig(), { keepSandboxes });
    });
}

/** `svc status`: shows the service of the data directory. The exit code is 3 if none is running. */
export function statusCommand(): Command {
  return new Command('status')
    .description('show the service on this machine; exit code 3 if none is running')
    .option('--json', 'print the status as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { serviceStatus, statusText } = await import('../service/status.ts');
      const status = await serviceStatus(loadConfig());
      console.log(json ? JSON.stringify(status, null, 2) : statusText(status));
      if (status.state === 'stopped') process.exitCode = 3;
    });
}
