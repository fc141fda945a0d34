import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Image } from '../image.ts';
import type { ImageInfo } from '../image-info.ts';
import { describeImage } from '../image-info.ts';
import { imageDirectory, readImage } from '../image-store.ts';
import { type Recipe, readRecipe } from '../recipe.ts';
import { addPrograms } from './add-programs.ts';
import { BASE_FILES, ensureBase } from './build-base.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { buildSnapshot } from './build-snapshot.ts';
import { linkDisk } from './link-disk.ts';

const BUILD_MS = 30 * 60_000;

/**
 * Builds the image of the current recipe and its snapshot for this machine, unless they exist. Atomic: the image
 * appears complete or not at all. Concurrent builds of one image wait for each other.
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
    (await withBuildLock(options, recipe.id, deadline, (openWork) =>
      buildFiles(recipe, options, openWork, deadline),
    ));
  await buildSnapshot(image, image, options, deadline);
  return describeImage(image, true);
}

async function buildFiles(
  recipe: Recipe,
  options: BuildImageOptions,
  openWork: () => Promise<string>,
  signal: AbortSignal,
): Promise<Image> {
  const { imageDir, onProgress } = options;
  const finished = await readImage(imageDir, recipe.template, recipe.id);
  if (finished !== undefined) return finished;
  const base = await ensureBase(recipe, options, signal);
  const work = await openWork();
  try {
    const output = join(work, 'output');
    await mkdir(output);
    onProgress('adding the programs');
    const { template, id, suite, packages, vcpu, memoryMib, diskMib, builds, warmUp } = recipe;
    const disk = await linkDisk(recipe, id, base, output);
    await link(join(base, BASE_FILES.kernel), join(output, 'vmlinuz'));
    await addPrograms(recipe, work, join(base, BASE_FILES.initrd), join(output, 'initrd'), signal);
    const sizes = { vcpu, memoryMib, diskMib };
    const description = { template, id, suite, packages, ...sizes, builds, warmUp, disk };
    await writeFile(join(output, 'image.json'), `${JSON.stringify(description, null, 2)}\n`);
    const directory = imageDirectory(imageDir, template, id);
    await mkdir(dirname(directory), { recursive: true });
    await rename(output, directory);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const image = await readImage(imageDir, recipe.template, recipe.id);
  if (image === undefined) throw new Error(`the image ${recipe.id} disappeared during its build`);
  return image;
}
