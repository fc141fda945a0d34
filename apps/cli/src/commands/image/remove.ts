import type { Template } from '@svc/contract';
import { Command } from 'commander';
import { parseTemplate } from '../../arguments/choices.ts';
import { CliError } from '../../output/errors.ts';
import { formatBytes } from '../../output/format.ts';

/** A running service marks its images as used more often than this. */
const IN_USE_MS = 2 * 60_000;

interface Options {
  readonly force?: boolean;
  readonly store?: boolean;
}

/** `svc image rm` */
export function removeCommand(): Command {
  return new Command('rm')
    .description('remove an image with its snapshots; sandboxes that run keep their disks')
    .argument('<template>', 'template of the image', parseTemplate)
    .argument('<image>', 'id of the image, as `svc image ls` prints it')
    .option('--store', 'remove it from the object store; needs the database of its control planes')
    .option('--force', 'remove it even if a service has used it in the last two minutes')
    .action(async (template: Template, id: string, { force, store }: Options) => {
      if (store) return removeFromStore(template, id);
      const { loadConfig } = await import('@svc/config');
      const { listStored, removeStored } = await import('@svc/microvm');
      const { imageDir } = loadConfig();
      const { items } = await listStored(imageDir);
      const image = items.find(
        (item) => item.kind === 'image' && item.template === template && item.name === id,
      );
      if (image === undefined) {
        throw new CliError('image_not_found', `there is no image ${id} of ${template}`, {
          next: 'see the images with svc image ls',
        });
      }
      if (!force && Date.now() - image.lastUsedAt.getTime() < IN_USE_MS) {
        throw new CliError('image_in_use', `the image ${id} is in use`, {
          next: 'stop the service that uses it, or repeat the command with --force',
        });
      }
      if (!(await removeStored(imageDir, image))) {
        throw new CliError('image_in_use', `the image ${id} is being built`, {
          next: 'try again when the build has ended',
        });
      }
      console.log(`removed image ${template} ${id} (${formatBytes(image.bytes)})`);
    });
}

/** Removes an image for every processor. Control planes then remove its blobs. */
async function removeFromStore(template: Template, id: string): Promise<void> {
  const { loadConfig } = await import('@svc/config');
  const { withImages } = await import('../../service/images/operator-images.ts');
  await withImages(loadConfig(), async (images) => {
    const stored = (await images.list()).filter(
      (image) => image.template === template && image.image === id,
    );
    if (stored.length === 0) {
      throw new CliError('image_not_found', `the store has no image ${id} of ${template}`, {
        next: 'see the images with svc image ls --store',
      });
    }
    for (const { arch } of stored) {
      if (!(await images.remove({ template, imageId: id, arch }))) {
        throw new CliError('image_in_use', `a worker had the image ${id} in the last day`, {
          next: 'see the workers with svc worker ls',
        });
      }
      console.log(`removed image ${template} ${id} for ${arch} from the store`);
    }
  });
}
