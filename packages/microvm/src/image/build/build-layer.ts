import { mkdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskImage } from '../../disk-image.ts';
import type { Recipe } from '../recipe.ts';
import { compileLibraries } from './compile-libraries.ts';
import { packageSources } from './debian-mirror.ts';
import { EPOCH } from './epoch.ts';
import { inittabLines } from './inittab-lines.ts';
import { ownDisk } from './link-disk.ts';
import { addRecipeFiles } from './recipe-files.ts';
import { runBuildStep } from './run-build-step.ts';

const MIB = 1024 * 1024;

export interface LayerRequest {
  readonly recipe: Recipe;
  readonly base: Recipe;
  /** The root disk of the base: file names in `output`. */
  readonly below: DiskImage;
  /** Directory for temporary files. */
  readonly work: string;
  /** Directory for the layer, which refers to the files of the base there by their names. */
  readonly output: string;
  readonly onProgress: (line: string) => void;
}

/**
 * Adds the packages and files of a recipe to a copy of its base's root disk, and writes a qcow2 image with the blocks that
 * differ from the base. Needs a loop device.
 */
export async function buildLayer(
  { recipe, base, below, work, output, onProgress }: LayerRequest,
  signal: AbortSignal,
): Promise<void> {
  const step = (program: string, args: readonly string[], cwd = work) => {
    const env = { SOURCE_DATE_EPOCH: EPOCH, E2FSPROGS_FAKE_TIME: EPOCH };
    return runBuildStep(program, args, { cwd, env, onProgress }, signal);
  };
  onProgress('copying the base');
  const [top = ''] = below.slice(-1);
  const disk = join(work, 'disk.ext4');
  await step('qemu-img', ['convert', '-O', 'raw', join(output, top), disk]);
  await enlarge(disk, recipe, base, step);
  // Without a journal, only contents differ from the base.
  await step('tune2fs', ['-O', '^has_journal', disk]);

  onProgress('adding the packages');
  const tree = join(work, 'tree');
  await mkdir(tree);
  await addRecipeFiles(recipe, work, tree, onProgress, signal);
  await writeFile(join(work, 'inittab'), inittabLines(recipe));
  await writeFile(join(work, 'libraries'), compileLibraries(recipe, 'root'));
  const sources = await packageSources(recipe.suite);
  await writeFile(join(work, 'sources.list'), `${sources.join('\n')}\n`);
  // Private mount and process namespaces: the kernel cleans up after an interrupted build.
  const isolate = ['--mount', '--pid', '--fork', '--kill-child'];
  const install = ['bash', '-euo', 'pipefail', '-c', INSTALL_SCRIPT, 'bash', ...recipe.packages];
  await step('unshare', [...isolate, ...install]);

  onProgress('checking the disk');
  await step('tune2fs', ['-j', disk]);
  await step('e2fsck', ['-fn', disk]);
  onProgress('comparing the disk with the base');
  const layer = ownDisk(recipe);
  const format = below.length > 1 ? 'qcow2' : 'raw';
  const create = ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', disk, layer];
  await step('qemu-img', create, output);
  await step('qemu-img', ['rebase', '-F', format, '-b', top, layer], output);
}

/** Enlarges the copy of the base's disk to the size that the recipe names. */
async function enlarge(
  disk: string,
  { template, diskMib }: Recipe,
  base: Recipe,
  step: (program: string, args: readonly string[]) => Promise<void>,
): Promise<void> {
  if (diskMib < base.diskMib) {
    throw new Error(`the disk of ${template} is smaller than that of its base ${base.template}`);
  }
  if ((await stat(disk)).size >= diskMib * MIB) return;
  await truncate(disk, diskMib * MIB);
  await step('e2fsck', ['-fy', disk]);
  await step('resize2fs', [disk]);
}

/**
 * Runs in the work directory. Arguments: the packages. APT works as in the base, whose configuration of dpkg also keeps
 * documentation out. What it downloads does not touch the disk.
 */
const INSTALL_SCRIPT = String.raw`
umask 022
mkdir root scratch
mount -o loop,noatime,noinit_itable disk.ext4 root
mount -t proc proc root/proc
mount -t sysfs -o ro sysfs root/sys
mount -t tmpfs -o mode=755 tmpfs root/run
mount -t tmpfs -o mode=1777 tmpfs root/tmp
mount -t tmpfs -o mode=755 tmpfs root/dev
mknod -m 666 root/dev/null c 1 3
mknod -m 666 root/dev/zero c 1 5
mknod -m 666 root/dev/full c 1 7
mknod -m 444 root/dev/random c 1 8
mknod -m 444 root/dev/urandom c 1 9
ln -s /proc/self/fd root/dev/fd
mkdir root/run/build
mount --bind scratch root/run/build
if [ $# -gt 0 ]; then
  mount --bind /etc/resolv.conf root/etc/resolv.conf
  mkdir -p scratch/lists/partial scratch/cache/archives/partial
  cp sources.list scratch/
  # No package may start a server.
  printf '#!/bin/sh\nexit 101\n' >root/usr/sbin/policy-rc.d
  chmod 755 root/usr/sbin/policy-rc.d
  apt() {
    DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot root apt-get -q -y -o Acquire::Retries=5 \
      -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Dpkg::Use-Pty=0 \
      -o Dir::Etc::SourceList=/run/build/sources.list -o Dir::Etc::SourceParts=/dev/null \
      -o Dir::State::lists=/run/build/lists -o Dir::Cache=/run/build/cache "$@"
  }
  apt update
  apt install "$@"
  rm root/usr/sbin/policy-rc.d
  rm -rf root/var/log/apt root/var/log/dpkg.log root/var/log/alternatives.log
  rm -rf root/var/cache/debconf/*-old root/var/lib/dpkg/*-old
  umount root/etc/resolv.conf
fi
tar -C tree --owner=0 --group=0 -cf - . |
  tar -C root -xpf - --no-overwrite-dir --keep-directory-symlink
sh -eu libraries
cat inittab >>root/etc/inittab
umount root/run/build root/dev root/tmp root/run root/sys root/proc
# Deleted blocks become holes, so that they do not differ from the base's.
fstrim root
umount root
`;
