import { readdir } from 'node:fs/promises';
import type { ReleaseFacts } from './facts.ts';
import { run } from './run.ts';

/** Options of GNU tar with which equal files give equal archives, whoever makes them, where and when. */
export function reproducible({ epoch }: Pick<ReleaseFacts, 'epoch'>): string[] {
  return [
    '--sort=name',
    `--mtime=@${epoch}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--format=gnu',
    '--mode=u=rwX,go=rX',
  ];
}

/** Archives what is in `directory` into a compressed tarball. */
export async function makeTarball(
  directory: string,
  file: string,
  facts: ReleaseFacts,
): Promise<void> {
  const names = (await readdir(directory)).sort();
  const compress = '--use-compress-program=gzip --no-name';
  await run('tar', [...reproducible(facts), compress, '-C', directory, '-cf', file, ...names]);
}
