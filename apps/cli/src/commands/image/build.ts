import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../../arguments/template.ts';
import { withInterrupt } from '../../interrupt.ts';
import { Progress } from '../../output/progress.ts';

/** `svc image build`: builds an image unless the present one is of the same recipe. */
export function buildCommand(): Command {
  return new Command('build')
    .description('build an image, unless the one that is there is of the same recipe')
    .argument('[template]', 'what to build', parseTemplate, 'standard')
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
