import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { programPath, type Recipe } from '../recipe.ts';
import { runBuildStep } from './run-build-step.ts';

/**
 * Adds the recipe's programs to an initial RAM disk, whose `init` copies them to the root disk. The kernel reads
 * concatenated archives as one.
 */
export async function addPrograms(
  { bundles }: Recipe,
  work: string,
  initrd: string,
  target: string,
  signal: AbortSignal,
): Promise<void> {
  const tree = join(work, 'tree');
  await mkdir(tree);
  for (const [name, text] of bundles) {
    const path = join(tree, 'programs', programPath(name));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  const script = `{ cat "$1"; find . | sort | cpio --quiet -o -H newc | gzip -1; } >"$2"`;
  await runBuildStep(
    'sh',
    ['-c', script, 'sh', initrd, target],
    { cwd: tree, onProgress: () => undefined },
    signal,
  );
}
