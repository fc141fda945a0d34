import { mkdir, mkdtemp, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withDeadline } from '@svc/service-kit/process';
import type { ImageInfo } from '../facade.ts';
import { buildCommand } from './build-command.ts';
import { buildInitrd } from './build-initrd.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { buildRootfs, EPOCH } from './build-rootfs.ts';
import { buildSnapshot } from './build-snapshot.ts';
import type { Image } from './image.ts';
import { describeImage } from './image-info.ts';
import { imageDirectory, readImage, rootfsName } from './image-store.ts';
import { type Recipe, readRecipe } from './recipe.ts';

const BUILD_MS = 30 * 60_000;
const MIB = 1024 * 1024;

/**
 * Makes the image of the current recipe and its snapshot for this machine, unless they are there.
 * Atomic: it appears complete or not at all. Safe beside other builds; one waits for the other.
 */
export async function buildImage(
  options: BuildImageOptions,
  signal: AbortSignal,
): Promise<ImageInfo> {
  const deadline = withDeadline(signal, BUILD_MS);
  const recipe = await readRecipe(options.template, options.recipes);
  const built = await readImage(options.imageDir, recipe.template, recipe.id);
  const image =
    built ??
    (await withBuildLock(options, recipe.id, deadline, () =>
      buildFiles(recipe, options, deadline),
    ));
  await buildSnapshot(image, image, options, deadline);
  return describeImage(image, true);
}

async function buildFiles(
  recipe: Recipe,
  { imageDir, onProgress }: BuildImageOptions,
  signal: AbortSignal,
): Promise<Image> {
  const finished = await readImage(imageDir, recipe.template, recipe.id);
  if (finished !== undefined) return finished;
  const prefix = `${recipe.template}-${recipe.id}-`;
  const builds = join(imageDir, '.build');
  await removeLeftovers(builds, prefix);
  const work = await mkdtemp(join(builds, prefix));
  try {
    const output = join(work, 'output');
    await mkdir(output);
    onProgress('installing the packages');
    await buildRootfs(recipe, work, onProgress, signal);
    onProgress('packing the kernel');
    await buildInitrd(recipe, work, output, onProgress, signal);
    onProgress('writing the disk');
    await writeDisk(recipe, work, output, signal);
    const { template, id, suite, packages, vcpu, memoryMib, diskMib, warmUp } = recipe;
    const description = { template, id, suite, packages, vcpu, memoryMib, diskMib, warmUp };
    await writeFile(join(output, 'image.json'), `${JSON.stringify(description, null, 2)}\n`);
    const directory = imageDirectory(imageDir, template, id);
    await mkdir(dirname(directory), { recursive: true });
    await rename(output, directory);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const image = await readImage(imageDir, recipe.template, recipe.id);
  if (image === undefined) throw new Error(`the image ${prefix} disappeared while it was built`);
  return image;
}

async function writeDisk(
  { template, id, diskMib }: Recipe,
  work: string,
  output: string,
  signal: AbortSignal,
): Promise<void> {
  const disk = join(output, rootfsName(template, id));
  await writeFile(disk, '');
  await truncate(disk, diskMib * MIB);
  // Nothing in it is drawn by lot: the recipe's digest stands in for what would be random.
  const uuid = uuidOf(id);
  const features = `lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0,hash_seed=${uuid}`;
  await buildCommand(
    'mke2fs',
    [
      ...['-q', '-t', 'ext4', '-m', '1', '-L', 'root', '-U', uuid, '-E', features],
      ...['-d', join(work, 'root'), disk],
    ],
    { env: { E2FSPROGS_FAKE_TIME: EPOCH }, onProgress: () => undefined },
    signal,
  );
}

/** We hold the lock: whatever else builds under this name was interrupted. */
async function removeLeftovers(builds: string, prefix: string): Promise<void> {
  await mkdir(builds, { recursive: true });
  for (const name of await readdir(builds)) {
    if (name.startsWith(prefix)) await rm(join(builds, name), { recursive: true, force: true });
  }
}

function uuidOf(id: string): string {
  const digits = id.padEnd(32, '0');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
