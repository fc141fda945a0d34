import { Command } from 'commander';
import { endProcess } from '../end-process.ts';

/** `svc up`: everything on this machine, until Ctrl-C; with `--detach` in the background. */
export function upCommand(): Command {
  return new Command('up')
    .description('start everything on this machine and serve until Ctrl-C')
    .option('-d, --detach', 'return once it is ready; `svc down` stops it')
    .action(async ({ detach }: { detach?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const config = loadConfig();
      if (detach) {
        const { startDetached } = await import('../service/detach.ts');
        await startDetached(config);
        return;
      }
      const { runInForeground } = await import('../service/foreground.ts');
      endProcess(await runInForeground(config));
    });
}
