import type { ListedImage } from '@svc/store';
import { formatAge, formatBytes, formatMib, formatTable } from '../../output/format.ts';

const HEADING = ['TEMPLATE', 'IMAGE', 'ARCH', 'SIZE', 'PUSHED', 'FROM SVC', 'WORKERS', 'SIGNED BY'];

/** `svc image list --store`: the images in the object store. */
export async function listStoredImages(json: boolean): Promise<void> {
  const { loadConfig } = await import('@svc/config');
  const { withImages } = await import('../../service/images/operator-images.ts');
  const config = loadConfig();
  const { images, bytes } = await withImages(config, async (repository) => ({
    images: await repository.list(),
    bytes: await repository.bytes(),
  }));
  if (json) {
    console.log(JSON.stringify(images, null, 2));
    return;
  }
  console.log(formatTable([HEADING, ...images.map(cellsOf)]));
  const budget = formatMib(config.imageStoreBudgetMib);
  console.log(`\nimages: ${images.length}; together ${formatBytes(bytes)}, of at most ${budget}`);
}

function cellsOf(image: ListedImage): string[] {
  return [
    image.template,
    image.image,
    image.arch,
    formatBytes(image.bytes),
    `${formatAge(image.pushed_at.toISOString())} ago`,
    image.svc_from,
    String(image.workers),
    image.signer,
  ];
}
