import type { Config } from '@svc/config';
import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../../arguments/choices.ts';
import { formatBytes } from '../../output/format.ts';
import { Progress } from '../../output/progress.ts';
import { withInterrupt } from '../../process-lifetime.ts';

/** `svc image push` */
export function pushCommand(): Command {
  return new Command('push')
    .description('sign a built image and push it to the object store, where workers get it')
    .argument('[template]', 'template of the image', parseTemplate, 'standard')
    .action(async (template: Template) => {
      const { loadConfig } = await import('@svc/config');
      const config = loadConfig();
      await withInterrupt((signal) => pushWithProgress(config, template, signal));
    });
}

/** Pushes an image, and shows what it sends. */
export async function pushWithProgress(
  config: Config,
  template: Template,
  signal: AbortSignal,
): Promise<void> {
  const { push } = await import('../../service/images/push.ts');
  await new Progress().step(
    `push ${template}`,
    (note) => push(config, template, note, signal),
    ({ id, unchanged, bytes, sentBytes, repaired }) => {
      if (unchanged && sentBytes === 0) return `${id}: the store has it, undamaged`;
      const sent = `${id}: sent ${formatBytes(sentBytes)} of ${formatBytes(bytes)}`;
      return repaired === 0 ? sent : `${sent}; replaced ${repaired} damaged or lost blobs`;
    },
  );
}
