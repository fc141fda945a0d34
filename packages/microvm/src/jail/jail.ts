import { chmod, chown, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runEveryStep } from '@svc/service-kit/concurrency';
import { runProgram } from '@svc/service-kit/process';
import type { NetworkSlot } from '../network/index.ts';
import type { Cgroups, ResourceLimits } from './cgroups/cgroups.ts';
import type { Confinement } from './confinement.ts';

/** Maximum number of open files of a VM process. QEMU needs a few dozen. */
const MAX_OPEN_FILES = 256;

export interface JailOptions {
  readonly runDir: string;
  /** Contains one directory per VM. Mounted in the jail as /vms. */
  readonly vmsDir: string;
  /** Mounted in the jail as /images, read-only. */
  readonly imageDir: string;
  readonly cgroups: Cgroups;
}

/**
 * The root directory of all VM processes of a service: the system's programs and libraries and the images, all
 * read-only, a few device nodes, and one directory per VM, accessible only to that VM's user.
 */
export class Jail {
  readonly #options: JailOptions;
  readonly #root: string;

  private constructor(options: JailOptions) {
    this.#options = options;
    this.#root = join(options.runDir, 'jail');
  }

  /** Mounts the jail, or reuses the one that an earlier process left mounted. Needs root. */
  static async open(options: JailOptions): Promise<Jail> {
    const jail = new Jail(options);
    await mkdir(options.vmsDir, { recursive: true, mode: 0o711 });
    await mkdir(options.imageDir, { recursive: true, mode: 0o755 });
    if (await isMounted(jail.#root))
      await runProgram('sh', ['-euc', ADD_KVM_SCRIPT, 'sh', jail.#root]);
    else await jail.#mount();
    return jail;
  }

  /** Directory of a VM on this machine. The VM process has access only to its subdirectory `files`. */
  directoryOf(id: string): string {
    return join(this.#options.vmsDir, id);
  }

  /** Path in the jail of a file in the image directory. */
  imagePath(path: string): string {
    return path.replace(this.#options.imageDir, '/images');
  }

  /** Creates the VM's directory. */
  async prepare(id: string, slot: NetworkSlot): Promise<void> {
    const directory = this.directoryOf(id);
    const files = join(directory, 'files');
    await mkdir(files, { recursive: true });
    await chmod(directory, 0o711);
    await chmod(files, 0o700);
    await chown(files, slot.uid, slot.uid);
  }

  confine(id: string, slot: NetworkSlot, limits: ResourceLimits): Confinement {
    const { cgroups } = this.#options;
    return {
      id,
      slot,
      directory: join(this.directoryOf(id), 'files'),
      insideDirectory: `/vms/${id}/files`,
      socketDirectory: join(this.#root, 'vms', id, 'files'),
      hostDirectory: join(this.#root, 'vms', id),
      command: (program, args) => this.#command(slot, program, args),
      limit: (pid, owner) => cgroups.add(id, limits, pid, owner),
    };
  }

  /** Has a VM, with the process `pid`, share the processor with the other VMs of its owner. See {@link Cgroups.assign}. */
  async assign(id: string, owner: string, pid: number): Promise<void> {
    await this.#options.cgroups.assign(id, owner, pid);
  }

  /** Removes the directory and control group of a VM, whose process must have ended. */
  async remove(id: string): Promise<void> {
    await runEveryStep([
      { name: 'remove the control group', run: () => this.#options.cgroups.remove(id) },
      {
        name: 'remove the files',
        run: () => rm(this.directoryOf(id), { recursive: true, force: true }),
      },
    ]);
  }

  /** Unmounts the jail. All VMs must have ended. */
  async close(): Promise<void> {
    await runEveryStep([
      { name: 'remove the control groups', run: () => this.#options.cgroups.close() },
      { name: 'unmount the jail', run: () => this.#unmount() },
    ]);
  }

  #command(slot: NetworkSlot, program: string, args: readonly string[]): [string, string[]] {
    const enter = [
      `--net=/run/netns/${slot.netns}`,
      `--root=${this.#root}`,
      '--',
      '/usr/bin/setpriv',
      `--reuid=${slot.uid}`,
      `--regid=${slot.uid}`,
      '--clear-groups',
      '--inh-caps=-all',
      '--bounding-set=-all',
      '--no-new-privs',
      '/usr/bin/prlimit',
      '--core=0',
      `--nofile=${MAX_OPEN_FILES}`,
      '--',
      program,
      ...args,
    ];
    return ['nsenter', enter];
  }

  async #unmount(): Promise<void> {
    if (await isMounted(this.#root))
      await runProgram('umount', ['--recursive', '--lazy', this.#root]);
    await rm(this.#root, { recursive: true, force: true });
  }

  async #mount(): Promise<void> {
    await mkdir(this.#root, { recursive: true });
    const { vmsDir, imageDir } = this.#options;
    await runProgram('sh', ['-euc', MOUNT_SCRIPT, 'sh', this.#root, vmsDir, imageDir]);
  }
}

/** Arguments: the jail's root, the VMs' directory, the image directory. */
const MOUNT_SCRIPT = `
umask 022
root=$1 vms=$2 images=$3
mount -t tmpfs -o nosuid,noexec,mode=755,size=1m svc-jail "$root"
trap 'umount --recursive --lazy "$root"' EXIT
mkdir -p "$root/usr" "$root/images" "$root/vms" "$root/dev/net" "$root/etc" "$root/tmp"
for name in bin sbin lib lib64; do
  [ ! -e "/$name" ] || ln -s "usr/$name" "$root/$name"
done
cp /etc/ld.so.cache "$root/etc/"
mount --bind /usr "$root/usr"
mount -o remount,bind,ro,nosuid,nodev "$root/usr"
mount --bind "$images" "$root/images"
mount -o remount,bind,ro,nosuid,nodev,noexec "$root/images"
mount --bind "$vms" "$root/vms"
mount -o remount,bind,nosuid,nodev,noexec "$root/vms"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 444 "$root/dev/random" c 1 8
mknod -m 444 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/net/tun" c 10 200
[ ! -e /dev/kvm ] || mknod -m 666 "$root/dev/kvm" c 10 232
mount -o remount,ro "$root"
trap - EXIT
`;

/** For a jail that was mounted before the machine had KVM. Argument: the jail's root. */
const ADD_KVM_SCRIPT = `
root=$1
if [ -e /dev/kvm ] && [ ! -e "$root/dev/kvm" ]; then
  mount -o remount,rw "$root"
  trap 'mount -o remount,ro "$root"' EXIT
  mknod -m 666 "$root/dev/kvm" c 10 232
fi
`;

async function isMounted(path: string): Promise<boolean> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.split('\n').some((line) => line.split(' ')[4] === path);
}
