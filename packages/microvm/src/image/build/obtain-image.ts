import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pullImage } from '../distribution/pull-image.ts';
import type { Image } from '../image.ts';
import { imageDirectory, readImage } from '../image-store.ts';
import type { Recipe } from '../recipe.ts';
import { addPrograms } from './add-programs.ts';
import { BASE_FILES, ensureBase } from './build-base.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { linkDisk } from './link-disk.ts';

/**
 * The image of a recipe, without a snapshot: as it is there, from the store, or built. It appears complete or not at all.
 * Concurrent calls for one image wait for each other.
 * @throws ImageRefusedError or ImageNotStoredError if it is to come from the store
 */
export async function obtainImage(
  recipe: Recipe,
  options: BuildImageOptions,
  signal: AbortSignal,
): Promise<Image> {
  const built = await readImage(options.imageDir, recipe.template, recipe.id);
  return (
    built ??
    (await withBuildLock(options, recipe.id, signal, (openWork) =>
      makeFiles(recipe, options, openWork, signal),
    ))
  );
}

async function makeFiles(
  recipe: Recipe,
  options: BuildImageOptions,
  openWork: () => Promise<string>,
  signal: AbortSignal,
): Promise<Image> {
  const { imageDir, store } = options;
  const finished = await readImage(imageDir, recipe.template, recipe.id);
  if (finished !== undefined) return finished;
  const isPulled = store !== undefined && (await pullImage(recipe, store, options, signal));
  if (!isPulled) await buildFiles(recipe, options, openWork, signal);
  const image = await readImage(imageDir, recipe.template, recipe.id);
  if (image === undefined) throw new Error(`the image ${recipe.id} disappeared during its build`);
  return image;
}

async function buildFiles(
  recipe: Recipe,
  options: BuildImageOptions,
  openWork: () => Promise<string>,
  signal: AbortSignal,
): Promise<void> {
  const { imageDir, onProgress } = options;
  const base = await ensureBase(recipe, options, signal);
  const work = await openWork();
  try {
    const output = join(work, 'output');
    await mkdir(output);
    onProgress('adding the programs');
    const { template, id, suite, packages, vcpu, memoryMib, diskMib, builds } = recipe;
    const { warmUp, idleWarmUp } = recipe;
    const disk = await linkDisk(recipe, id, base, output);
    await link(join(base, BASE_FILES.kernel), join(output, 'vmlinuz'));
    await addPrograms(recipe, work, join(base, BASE_FILES.initrd), join(output, 'initrd'), signal);
    const sizes = { vcpu, memoryMib, diskMib };
    const commands = { warmUp, idleWarmUp };
    const description = { template, id, suite, packages, ...sizes, builds, ...commands, disk };
    await writeFile(join(output, 'image.json'), `${JSON.stringify(description, null, 2)}\n`);
    const directory = imageDirectory(imageDir, template, id);
    await mkdir(dirname(directory), { recursive: true });
    await rename(output, directory);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
