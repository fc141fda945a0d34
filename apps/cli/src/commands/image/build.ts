import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../../arguments/choices.ts';
import { Progress } from '../../output/progress.ts';
import { withInterrupt } from '../../process-lifetime.ts';

/** `svc image build` */
export function buildCommand(): Command {
  return new Command('build')
    .description('build an image, unless it is up to date with its recipe')
    .argument('[template]', 'template to build', parseTemplate, 'standard')
    .action(async (template: Template) => {
      const { loadConfig } = await import('@svc/config');
      const { buildImage } = await import('@svc/microvm');
      const { imageDir, kvmProbeSeconds } = loadConfig();
      const kvmProbeMs = kvmProbeSeconds * 1000;
      await withInterrupt((signal) =>
        new Progress().step(
          `image ${template}`,
          (note) => buildImage({ template, imageDir, kvmProbeMs, onProgress: note }, signal),
          ({ id }) => id,
        ),
      );
    });
}
