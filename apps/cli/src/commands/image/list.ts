import type { ImageInfo, StoredItem, StoredItems } from '@svc/microvm';
import { Command } from 'commander';
import { formatAge, formatBytes, formatMib, formatTable } from '../../output/format.ts';
import { listStoredImages } from './list-stored.ts';

const HEADING = ['TEMPLATE', 'IMAGE', 'STATE', 'CPUS', 'MEMORY', 'DISK', 'SIZE', 'USED'];

/** `svc image list` */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the images on this machine, and the space that they take')
    .option('--json', 'print the images as JSON')
    .option('--store', 'list those in the object store; needs the database of its control planes')
    .action(async ({ json, store }: { json?: boolean; store?: boolean }) => {
      if (store) return listStoredImages(json ?? false);
      const { loadConfig } = await import('@svc/config');
      const { listImages, listStored } = await import('@svc/microvm');
      const { imageDir, imageBudgetMib } = loadConfig();
      const [images, stored] = await Promise.all([listImages(imageDir), listStored(imageDir)]);
      const rows = images.map((image) => withSpace(image, stored.items));
      if (json) {
        console.log(JSON.stringify(rows, null, 2));
        return;
      }
      console.log(formatTable([HEADING, ...rows.map(cellsOf)]));
      console.log(`\n${summary(stored)}, of at most ${formatMib(imageBudgetMib)}`);
    });
}

interface ListedImage extends ImageInfo {
  /** Allocated bytes, without those of the snapshots. */
  readonly bytes: number;
  /** Those of `bytes` that belong to the templates on which this one is based. */
  readonly baseBytes: number;
  readonly lastUsedAt: string;
  readonly snapshots: readonly { readonly name: string; readonly bytes: number }[];
}

function withSpace(image: ImageInfo, items: readonly StoredItem[]): ListedImage {
  const own = items.filter(({ template }) => template === image.template);
  const stored = own.find(({ kind, name }) => kind === 'image' && name === image.id);
  return {
    ...image,
    bytes: stored?.bytes ?? 0,
    baseBytes: stored?.baseBytes ?? 0,
    lastUsedAt: (stored?.lastUsedAt ?? new Date(0)).toISOString(),
    snapshots: own
      .filter(({ kind, name }) => kind === 'snapshot' && name.startsWith(`${image.id}-`))
      .map(({ name, bytes }) => ({ name, bytes })),
  };
}

function cellsOf(image: ListedImage): string[] {
  const snapshotBytes = image.snapshots.reduce((sum, { bytes }) => sum + bytes, 0);
  return [
    image.template,
    image.id,
    image.ready ? 'current' : 'outdated',
    String(image.vcpu),
    formatMib(image.memoryMib),
    formatMib(image.diskMib),
    formatBytes(image.bytes - image.baseBytes + snapshotBytes),
    `${formatAge(image.lastUsedAt)} ago`,
  ];
}

function summary({ items, bytes }: StoredItems): string {
  const count = (wanted: StoredItem['kind']) => items.filter(({ kind }) => kind === wanted).length;
  const counts = `images: ${count('image')}, snapshots: ${count('snapshot')}, bases: ${count('base')}`;
  return `${counts}; together ${formatBytes(bytes)}`;
}
