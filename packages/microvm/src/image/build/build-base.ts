import { link, mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Recipe } from '../recipe.ts';
import { markUsed } from '../storage/last-used.ts';
import { buildInitrd } from './build-initrd.ts';
import { buildLayer } from './build-layer.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { buildRootfs } from './build-rootfs.ts';
import { EPOCH } from './epoch.ts';
import { linkDisk, ownDisk } from './link-disk.ts';
import { runBuildStep } from './run-build-step.ts';

const MIB = 1024 * 1024;

/** The files of a base image, beside its root disk. */
export const BASE_FILES = { kernel: 'vmlinuz', initrd: 'initrd' } as const;

/**
 * Builds the base image of a recipe, unless it exists: root disk, kernel and initial RAM disk, without the bundled
 * programs. Takes minutes. Returns its directory. Images hard-link its files. What the recipe is based on is built first,
 * and stays if this build fails.
 */
export async function ensureBase(
  recipe: Recipe,
  options: BuildImageOptions,
  signal: AbortSignal,
): Promise<string> {
  const { template, baseId } = recipe;
  const below = recipe.base && (await ensureBase(recipe.base, options, signal));
  const directory = join(options.imageDir, '.bases', `${template}-${baseId}`);
  return withBuildLock(options, `${baseId}-base`, signal, async (openWork) => {
    if (await markUsed(directory)) return directory;
    const work = await openWork();
    try {
      const output = join(work, 'output');
      await mkdir(output);
      if (recipe.base === undefined || below === undefined) {
        await build(recipe, work, output, options.onProgress, signal);
      } else {
        await addToBase(recipe, recipe.base, below, work, options.onProgress, signal);
      }
      await mkdir(dirname(directory), { recursive: true });
      await rename(output, directory);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
    return directory;
  });
}

async function build(
  recipe: Recipe,
  work: string,
  output: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  onProgress('installing the packages');
  await buildRootfs(recipe, work, onProgress, signal);
  onProgress('packing the kernel');
  await buildInitrd(recipe, work, output, onProgress, signal);
  onProgress('writing the disk');
  await writeDisk(recipe, work, join(output, ownDisk(recipe)), signal);
}

async function addToBase(
  recipe: Recipe,
  base: Recipe,
  baseDirectory: string,
  work: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const output = join(work, 'output');
  const below = await linkDisk(base, base.baseId, baseDirectory, output);
  for (const name of Object.values(BASE_FILES)) {
    await link(join(baseDirectory, name), join(output, name));
  }
  await buildLayer({ recipe, base, below, work, output, onProgress }, signal);
}

async function writeDisk(
  { baseId, diskMib }: Recipe,
  work: string,
  disk: string,
  signal: AbortSignal,
): Promise<void> {
  await writeFile(disk, '');
  await truncate(disk, diskMib * MIB);
  // The build is reproducible: the recipe's digest replaces values that would otherwise be random.
  const uuid = uuidOf(baseId);
  const features = `lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0,hash_seed=${uuid}`;
  await runBuildStep(
    'mke2fs',
    [
      ...['-q', '-t', 'ext4', '-m', '1', '-L', 'root', '-U', uuid, '-E', features],
      ...['-d', join(work, 'root'), disk],
    ],
    { env: { E2FSPROGS_FAKE_TIME: EPOCH }, onProgress: () => undefined },
    signal,
  );
}

function uuidOf(id: string): string {
  const digits = id.padEnd(32, '0');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
