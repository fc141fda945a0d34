import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../../arguments/choices.ts';
import { Progress } from '../../output/progress.ts';
import { withInterrupt } from '../../process-lifetime.ts';
import { pushWithProgress } from './push.ts';

/** `svc image build` */
export function buildCommand(): Command {
  return new Command('build')
    .description('build an image, unless it is up to date with its recipe')
    .argument('[template]', 'template to build', parseTemplate, 'standard')
    .option('--push', 'push it to the object store, as `svc image push` does')
    .action(async (template: Template, { push }: { push?: boolean }) => {
      const { loadConfig } = await import('@svc/config');
      const { buildImage } = await import('@svc/microvm');
      const config = loadConfig();
      const { imageDir, kvmProbeSeconds } = config;
      const kvmProbeMs = kvmProbeSeconds * 1000;
      await withInterrupt(async (signal) => {
        await new Progress().step(
          `image ${template}`,
          (note) => buildImage({ template, imageDir, kvmProbeMs, onProgress: note }, signal),
          ({ id }) => id,
        );
        if (push) await pushWithProgress(config, template, signal);
      });
    });
}
