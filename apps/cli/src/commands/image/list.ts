import { Command } from 'commander';
import { formatTable } from '../../output/table.ts';
import { formatMib } from '../../output/units.ts';

/** `svc image list`: the built images of this machine. */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the images of this machine')
    .option('--json', 'print them as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { listImages } = await import('@svc/microvm');
      const images = await listImages(loadConfig().imageDir);
      if (json) {
        console.log(JSON.stringify(images, null, 2));
        return;
      }
      const rows = images.map((image) => [
        image.template,
        image.id,
        image.ready ? 'current' : 'outdated',
        String(image.vcpu),
        formatMib(image.memoryMib),
        formatMib(image.diskMib),
      ]);
      console.log(formatTable([['TEMPLATE', 'IMAGE', 'STATE', 'CPUS', 'MEMORY', 'DISK'], ...rows]));
    });
}
