import { createHash } from 'node:crypto';
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { packageSources } from '@svc/microvm';
import { mustRun } from './run-step.ts';

const SUITE = 'trixie';
const DISK_MIB = 8192;
/** The packages of the machine itself. Those that svc needs are in `scripts/host-packages.txt`. */
const MACHINE_PACKAGES = ['linux-image-amd64', 'openssh-server', 'systemd-sysv', 'udev'];

/** Files of the machine: path → text. The second disk brings the checkout and the key of the user. */
const FILES: Readonly<Record<string, string>> = {
  'etc/fstab': '/dev/vda / ext4 defaults 0 0\n/dev/vdb /mnt ext4 defaults 0 0\n',
  'etc/hostname': 'kvm-lab\n',
  'etc/hosts': '127.0.0.1 localhost kvm-lab\n',
  'etc/modules-load.d/kvm.conf': 'kvm_amd\n',
  'etc/ssh/sshd_config.d/lab.conf':
    'AuthorizedKeysFile /mnt/authorized_keys\nPermitRootLogin prohibit-password\n',
  'etc/systemd/network/lab.network':
    '[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n',
};

/** The files that the machine boots from. */
export interface RootDisk {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** Builds the root disk of the machine in the directory `cache`, unless it is there. Takes about two minutes. */
export async function buildRootDisk(
  checkout: string,
  cache: string,
  signal: AbortSignal,
): Promise<RootDisk> {
  const packages = [...MACHINE_PACKAGES, ...(await hostPackages(checkout))].sort();
  const recipe = JSON.stringify([SUITE, DISK_MIB, packages, FILES]);
  const id = createHash('sha256').update(recipe).digest('hex').slice(0, 12);
  const directory = join(cache, id);
  const built = {
    disk: join(directory, 'root.ext4'),
    kernel: join(directory, 'vmlinuz'),
    initrd: join(directory, 'initrd.img'),
  };
  if (await exists(directory)) return built;
  await mkdir(dirname(directory), { recursive: true });
  const work = await mkdtemp(`${directory}-`);
  try {
    await build(work, packages, signal);
    await rename(join(work, 'output'), directory);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return built;
}

async function build(
  work: string,
  packages: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const root = join(work, 'root');
  const output = join(work, 'output');
  await mkdir(output);
  // Private mount and process namespaces: the kernel cleans up after an interrupted build.
  const isolated = ['--mount', '--pid', '--fork', '--kill-child'];
  const options = ['--mode=root', '--variant=minbase', '--format=directory'];
  const noRecommends = '--aptopt=APT::Install-Recommends "false"';
  const include = `--include=${packages.join(',')}`;
  const target = [SUITE, root, ...(await packageSources(SUITE))];
  const words = [...isolated, 'mmdebstrap', ...options, noRecommends, include, ...target];
  await mustRun('unshare', words, signal);
  for (const [path, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const services = ['ssh', 'systemd-networkd'];
  await mustRun('systemctl', [`--root=${root}`, 'enable', ...services], signal);
  const boot = await readdir(join(root, 'boot'));
  for (const [prefix, name] of [
    ['vmlinuz-', 'vmlinuz'],
    ['initrd.img-', 'initrd.img'],
  ] as const) {
    const file = boot.find((entry) => entry.startsWith(prefix));
    if (file === undefined) throw new Error(`the kernel package has no ${prefix}* in /boot`);
    await copyFile(join(root, 'boot', file), join(output, name));
  }
  await writeDisk(root, join(output, 'root.ext4'), DISK_MIB, signal);
}

/** Writes a directory to a new disk image. */
export async function writeDisk(
  directory: string,
  disk: string,
  mib: number,
  signal: AbortSignal,
): Promise<void> {
  await mustRun('mke2fs', ['-q', '-t', 'ext4', '-d', directory, disk, `${mib}M`], signal);
}

/** The Debian packages that svc needs on its machine. */
async function hostPackages(checkout: string): Promise<string[]> {
  const text = await readFile(join(checkout, 'scripts/host-packages.txt'), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.split(/\s/)[0] ?? '');
}

async function exists(path: string): Promise<boolean> {
  try {
    await readdir(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
