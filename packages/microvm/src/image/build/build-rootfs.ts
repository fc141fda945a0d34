import { appendFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AGENT_USER, GUEST_LINK } from '@svc/contract';
import type { Recipe } from '../recipe.ts';
import { compileLibraries } from './compile-libraries.ts';
import { guestPackageSources, packageSources } from './debian-mirror.ts';
import { EPOCH } from './epoch.ts';
import { inittabLines } from './inittab-lines.ts';
import { addRecipeFiles } from './recipe-files.ts';
import { runBuildStep } from './run-build-step.ts';
import { shellWord } from './shell-word.ts';

type Step = (program: string, args: readonly string[]) => Promise<void>;

/** Installs the recipe's packages and files in `root` below `work`, and the files of the kernel package in `kernel`. */
export async function buildRootfs(
  recipe: Recipe,
  work: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const root = join(work, 'root');
  const sources = await packageSources(recipe.suite);
  const env = { SOURCE_DATE_EPOCH: EPOCH, DEBIAN_FRONTEND: 'noninteractive' };
  const step: Step = (program, args) =>
    runBuildStep(program, args, { cwd: work, env, onProgress }, signal);
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
    ...[recipe.suite, root, ...sources],
  ]);
  await addRecipeFiles(recipe, work, root, onProgress, signal);
  await step('sh', ['-euc', `umask 022\n${compileLibraries(recipe, root)}`]);
  const services = inittabLines(recipe);
  if (services !== '') await appendFile(join(root, 'etc/inittab'), services);
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
