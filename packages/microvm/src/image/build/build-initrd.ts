import { copyFile, mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Recipe } from '../recipe.ts';
import { runBuildStep } from './run-build-step.ts';

/** The drivers for the virtual machine that are kernel modules, in the order of their dependencies. */
const MODULES = ['virtio_mmio', 'virtio_blk', 'failover', 'net_failover', 'virtio_net'];

/** Produces the kernel and its initial RAM disk: a static shell, the drivers, and the recipe's `init`. */
export async function buildInitrd(
  recipe: Recipe,
  work: string,
  output: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const kernel = join(work, 'kernel');
  const tree = join(work, 'initrd');
  for (const name of ['bin', 'modules', 'dev', 'root']) {
    await mkdir(join(tree, name), { recursive: true });
  }
  await copyFile(join(work, 'root/usr/bin/busybox'), join(tree, 'bin/busybox'));
  await copyFile(join(recipe.kernelFolder, 'init'), join(tree, 'init'));
  const step = (program: string, args: readonly string[]) =>
    runBuildStep(program, args, { cwd: tree, onProgress }, signal);
  const files = await readdir(join(kernel, 'usr/lib/modules'), { recursive: true });
  for (const [index, name] of MODULES.entries()) {
    const file = files.find((path) => path.endsWith(`/${name}.ko.xz`));
    if (file === undefined) continue;
    const source = join(kernel, 'usr/lib/modules', file);
    await step('sh', ['-c', 'xz -dc "$1" >"$2"', 'sh', source, `modules/${index}-${name}.ko`]);
  }
  await step('sh', [
    '-c',
    'find . | sort | cpio --quiet -o -H newc | gzip -1 >"$1"',
    'sh',
    join(output, 'initrd'),
  ]);
  const [image] = (await readdir(join(kernel, 'boot'))).filter((name) =>
    name.startsWith('vmlinuz'),
  );
  await rename(join(kernel, 'boot', image ?? 'vmlinuz'), join(output, 'vmlinuz'));
}
