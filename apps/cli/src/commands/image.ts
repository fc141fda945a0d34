import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../arguments/choices.ts';
import { formatMib, formatTable } from '../output/format.ts';
import { Progress } from '../output/progress.ts';
import { withInterrupt } from '../process-lifetime.ts';

/** `svc image …` */
export function imageCommand(): Command {
  return new Command('image')
    .description('build and list the images that sandboxes start from')
    .addCommand(buildCommand())
    .addCommand(listCommand());
}

function buildCommand(): Command {
  return new Command('build')
    .description('build an image, unless it is up to date with its recipe')
    .argument('[template]', 'template to build', parseTemplate, 'standard')
    .action(async (template: Template) => {
      const { loadConfig } = await import('@svc/config');
      const { buildImage } = await import('@svc/microvm');
      const { imageDir } = loadConfig();
      await withInterrupt((signal) =>
        new Progress().step(
          `image ${template}`,
          (note) => buildImage({ template, imageDir, onProgress: note }, signal),
          ({ id }) => id,
        ),
      );
    });
}

const HEADING = ['TEMPLATE', 'IMAGE', 'STATE', 'CPUS', 'MEMORY', 'DISK'];

function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the images on this machine')
    .option('--json', 'print the images as JSON')
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
      console.log(formatTable([HEADING, ...rows]));
    });
}
