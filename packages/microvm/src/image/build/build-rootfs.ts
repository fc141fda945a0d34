import { cp, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AGENT_USER, GUEST_LINK } from '@svc/contract';
import type { Recipe } from '../recipe.ts';
import { guestPackageSources, packageSource } from './debian-mirror.ts';
import { runBuildStep } from './run-build-step.ts';

/** Timestamp of everything in the image, in seconds since 1970, so that builds are reproducible. */
export const EPOCH = '1700000000';

/** Runs a program of the build, in the work directory unless `cwd` is given. */
type Step = (program: string, args: readonly string[], cwd?: string) => Promise<void>;

/** Installs the recipe's packages and files in `root` below `work`, and the files of the kernel package in `kernel`. */
export async function buildRootfs(
  recipe: Recipe,
  work: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const root = join(work, 'root');
  const source = await packageSource(recipe.suite);
  const step: Step = (program, args, cwd = work) =>
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
  await addAgentUser(root, step);
  await writeFile(join(root, 'etc/apt/sources.list'), guestPackageSources(recipe.suite));
  await rm(join(root, 'etc/resolv.conf'), { force: true });
  await writeFile(join(root, 'etc/resolv.conf'), `nameserver ${GUEST_LINK.gateway}\n`);
  await writeFile(join(root, 'etc/machine-id'), '');
}

/** Adds the user of the agents, who may become root: the sandbox, not the user, confines an agent. */
async function addAgentUser(root: string, step: Step): Promise<void> {
  const useradd = ['useradd', '--create-home', '--shell', '/bin/bash', '--uid', '1000', AGENT_USER];
  await step('chroot', [root, ...useradd]);
  const sudoers = join(root, 'etc/sudoers.d', AGENT_USER);
  await writeFile(sudoers, `${AGENT_USER} ALL=(ALL:ALL) NOPASSWD: ALL\n`, { mode: 0o440 });
}

/** Installs the files that the recipe takes from npm packages: Node.js, npm, the vendors' agents. */
async function installNpmFiles(
  { folder, npmFiles = {}, executables = {} }: Recipe,
  work: string,
  root: string,
  step: Step,
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
