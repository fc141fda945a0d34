import { cp, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GUEST_LINK } from '@svc/contract';
import type { Recipe } from '../recipe.ts';
import { packageSource } from './debian-mirror.ts';
import { runBuildStep } from './run-build-step.ts';

/** Timestamp of everything in the image, in seconds since 1970, so that builds are reproducible. */
export const EPOCH = '1700000000';

/** Installs the recipe's packages and files in `root` below `work`, and the files of the kernel package in `kernel`. */
export async function buildRootfs(
  recipe: Recipe,
  work: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const root = join(work, 'root');
  const source = await packageSource(recipe.suite);
  const step = (program: string, args: readonly string[], cwd = work) =>
    runBuildStep(
      program,
      args,
      { cwd, env: { SOURCE_DATE_EPOCH: EPOCH, DEBIAN_FRONTEND: 'noninteractive' }, onProgress },
      signal,
    );
  // Private mount and process namespaces: the kernel cleans up after an interrupted build.
  await step('unshare', [
    ...['--mount', '--pid', '--fork', '--kill-child', 'mmdebstrap'],
    ...['--mode=root', '--variant=minbase', '--format=directory'],
    '--aptopt=Acquire::Retries "5"',
    '--aptopt=APT::Install-Recommends "false"',
    // A sandbox needs no documentation.
    ...['--dpkgopt=path-exclude=/usr/share/man/*', '--dpkgopt=path-exclude=/usr/share/doc/*'],
    ...[
      '--dpkgopt=path-exclude=/usr/share/locale/*',
      '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    ],
    `--include=${recipe.packages.join(',')}`,
    `--customize-hook=sh ${shellWord(join(recipe.kernelFolder, 'fetch-kernel'))} ${shellWord(work)}`,
    ...[recipe.suite, root, source],
  ]);
  await installNpmFiles(recipe, work, root, step);
  await cp(join(recipe.folder, 'rootfs'), root, { recursive: true });
  await step('chroot', [
    root,
    'useradd',
    '--create-home',
    '--shell',
    '/bin/bash',
    '--uid',
    '1000',
    'agent',
  ]);
  await rm(join(root, 'etc/resolv.conf'), { force: true });
  await writeFile(join(root, 'etc/resolv.conf'), `nameserver ${GUEST_LINK.gateway}\n`);
  await writeFile(join(root, 'etc/machine-id'), '');
}

/** Installs the files that the recipe takes from npm packages: Node.js, npm, the vendors' agents. */
async function installNpmFiles(
  { folder, npmFiles = {}, executables = {} }: Recipe,
  work: string,
  root: string,
  step: (program: string, args: readonly string[], cwd?: string) => Promise<void>,
): Promise<void> {
  if (Object.keys(npmFiles).length > 0) {
    const npm = join(work, 'npm');
    await cp(join(folder, 'npm'), npm, { recursive: true });
    await step('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], npm);
    for (const [target, source] of Object.entries(npmFiles)) {
      await mkdir(dirname(join(root, target)), { recursive: true });
      await rename(join(npm, 'node_modules', source), join(root, target));
    }
  }
  for (const [name, target] of Object.entries(executables)) {
    await symlink(join('/', target), join(root, 'usr/local/bin', name));
  }
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
