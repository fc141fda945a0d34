import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.ts';

/** The folder of the Helm chart in the repository, and in a release. */
export const CHART = 'deploy/helm';

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

/** The machine that a release is for: the one that the images are for. */
export const PLATFORM = { os: 'linux', cpu: 'x64', debian: 'amd64', oci: 'amd64' } as const;

/** What every file of a release is made from. Equal facts and sources give equal files. */
export interface ReleaseFacts {
  readonly version: string;
  /** The time of everything in the archives, in seconds since 1970. */
  readonly epoch: number;
}

/** Reads the version of the command line, and the time of the last commit unless SOURCE_DATE_EPOCH has another. */
export async function readFacts(): Promise<ReleaseFacts> {
  const { version } = JSON.parse(
    await readFile(join(REPOSITORY, 'apps/cli/package.json'), 'utf8'),
  ) as { version: string };
  const time =
    process.env.SOURCE_DATE_EPOCH ??
    (await run('git', ['log', '-1', '--format=%ct'], { cwd: REPOSITORY }));
  const epoch = Number(time);
  if (!Number.isSafeInteger(epoch))
    throw new Error('SOURCE_DATE_EPOCH must be a number of seconds');
  return { version, epoch };
}
