import { mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Recipe } from '../recipe.ts';
import { markUsed } from '../storage/last-used.ts';
import { buildInitrd } from './build-initrd.ts';
import { withBuildLock } from './build-lock.ts';
import type { BuildImageOptions } from './build-options.ts';
import { buildRootfs, EPOCH } from './build-rootfs.ts';
import { runBuildStep } from './run-build-step.ts';

const MIB = 1024 * 1024;

/** The files of a base image. */
export const BASE_FILES = { rootfs: 'rootfs.ext4', kernel: 'vmlinuz', initrd: 'initrd' } as const;

/**
 * Builds the base image of a recipe, unless it exists: root disk, kernel and initial RAM disk, without the bundled
 * programs. Takes minutes. Returns its directory. Images hard-link its files.
 */
export async function ensureBase(
  recipe: Recipe,
  options: BuildImageOptions,
  signal: AbortSignal,
): Promise<string> {
  const { template, baseId } = recipe;
  const directory = join(options.imageDir, '.bases', `${template}-${baseId}`);
  return withBuildLock(options, `${baseId}-base`, signal, async (openWork) => {
    if (await markUsed(directory)) return directory;
    const work = await openWork();
    try {
      await build(recipe, work, directory, options.onProgress, signal);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
    return directory;
  });
}

async function build(
  recipe: Recipe,
  work: string,
  directory: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const output = join(work, 'output');
  await mkdir(output);
  onProgress('installing the packages');
  await buildRootfs(recipe, work, onProgress, signal);
  onProgress('packing the kernel');
  await buildInitrd(recipe, work, output, onProgress, signal);
  onProgress('writing the disk');
  await writeDisk(recipe, work, join(output, BASE_FILES.rootfs), signal);
  await mkdir(dirname(directory), { recursive: true });
  await rename(output, directory);
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
