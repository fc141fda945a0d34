import { existsSync } from 'node:fs';
import { cp, mkdir, rename, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Recipe } from '../recipe.ts';
import { runBuildStep } from './run-build-step.ts';

/**
 * Adds the files of a recipe to a root directory: those from npm packages, the executables, and the folder `rootfs` if there
 * is one.
 */
export async function addRecipeFiles(
  { folder, npmFiles = {}, executables = {} }: Recipe,
  work: string,
  root: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (Object.keys(npmFiles).length > 0) {
    const npm = join(work, 'npm');
    await cp(join(folder, 'npm'), npm, { recursive: true });
    const install = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    await runBuildStep('npm', install, { cwd: npm, onProgress }, signal);
    for (const [target, source] of Object.entries(npmFiles)) {
      await mkdir(dirname(join(root, target)), { recursive: true });
      await rename(join(npm, 'node_modules', source), join(root, target));
    }
  }
  const links = join(root, 'usr/local/bin');
  await mkdir(links, { recursive: true });
  for (const [name, target] of Object.entries(executables)) {
    await symlink(join('/', target), join(links, name));
  }
  const rootfs = join(folder, 'rootfs');
  if (existsSync(rootfs)) await cp(rootfs, root, { recursive: true });
}
