import { Command } from 'commander';
import { formatBytes } from '../../output/format.ts';

/** `svc image prune` */
export function pruneCommand(): Command {
  return new Command('prune')
    .description(
      'remove outdated images, bases that nothing needs, and snapshots that can be taken again',
    )
    .option('--json', 'print what was removed as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { pruneImages } = await import('@svc/microvm');
      const removed = await pruneImages({ imageDir: loadConfig().imageDir, budgetBytes: 0 });
      if (json) {
        const rows = removed.map(({ kind, template, name, bytes }) => ({
          ...{ kind, template, name, bytes },
        }));
        console.log(JSON.stringify(rows, null, 2));
        return;
      }
      for (const { kind, template, name, bytes } of removed)
        console.log(`removed ${kind} ${template} ${name} (${formatBytes(bytes)})`);
      if (removed.length === 0) console.log('nothing to remove');
    });
}
