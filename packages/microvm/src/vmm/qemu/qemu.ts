import { chown, constants, copyFile, open, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { ProcessIdentity } from '@svc/service-kit/process';
import { isAlive, runProgram } from '@svc/service-kit/process';
import type { DiskImage } from '../../disk-image.ts';
import type { Confinement } from '../../jail/confinement.ts';
import { MicrovmError } from '../../microvm-error.ts';
import type { BootRequest, RestoreVmRequest, Vmm, VmProcess } from '../vmm.ts';
import {
  type Accelerator,
  bootArguments,
  type MemorySource,
  restoreArguments,
} from './command-line.ts';
import { controlSocket } from './control-socket.ts';
import { QemuProcess } from './qemu-process.ts';
import { Qmp } from './qmp.ts';
import { startQemu } from './start-qemu.ts';
import { tscKhz } from './tsc-frequency.ts';
import type { QemuVersion } from './version.ts';

const START_MS = 20_000;
const ADOPT_MS = 5000;
const MIB = 1024 * 1024;

export interface QemuOptions {
  readonly version: QemuVersion;
  readonly accelerator: Accelerator;
  readonly snapshotKey: string;
  /** Converts a path in the jail's image directory to the path outside the jail. */
  readonly outsidePath: (inside: string) => string;
  /** See `QemuProcessOptions`. */
  readonly onFault: (error: unknown) => void;
}

/** QEMU's `microvm` machine. https://www.qemu.org/docs/master/system/i386/microvm.html */
export class Qemu implements Vmm {
  readonly accelerator: 'kvm' | 'tcg';
  readonly snapshotKey: string;
  readonly #options: QemuOptions;

  constructor(options: QemuOptions) {
    this.#options = options;
    this.accelerator = options.accelerator.kind;
    this.snapshotKey = options.snapshotKey;
  }

  async boot(request: BootRequest, signal: AbortSignal): Promise<VmProcess> {
    const { confinement } = request;
    const { onFault } = this.#options;
    const memory = join(confinement.directory, 'memory');
    await createOverlay(
      join(confinement.directory, 'disk.qcow2'),
      request.rootfs.map((file) => this.#options.outsidePath(file)),
    );
    await giveToVmUser(confinement, 'disk.qcow2');
    await (await open(memory, 'w')).close();
    await truncate(memory, request.memoryMib * MIB);
    await giveToVmUser(confinement, 'memory');
    const source: MemorySource = {
      path: `${confinement.insideDirectory}/memory`,
      mapping: 'shared',
    };
    const args = bootArguments(request, this.#options.accelerator, source, await tscKhz());
    return startQemu({ confinement, args, onFault }, withDeadline(signal, START_MS));
  }

  async restore(request: RestoreVmRequest, signal: AbortSignal): Promise<VmProcess> {
    const { confinement } = request;
    const { onFault } = this.#options;
    const snapshot = this.#options.outsidePath(request.snapshot);
    const [source, state] = await Promise.all([
      this.#memorySource(request, snapshot),
      open(join(snapshot, 'state'), 'r'),
      this.#copy(confinement, join(snapshot, 'disk.qcow2'), 'disk.qcow2'),
    ]);
    let vm: QemuProcess;
    try {
      const args = restoreArguments(request, this.#options.accelerator, source);
      vm = await startQemu({ confinement, args, state, onFault }, withDeadline(signal, START_MS));
    } finally {
      await state.close();
    }
    try {
      await vm.load(signal);
      return vm;
    } catch (error) {
      await vm.kill();
      throw error;
    }
  }

  async adopt(
    confinement: Confinement,
    identity: ProcessIdentity,
    signal: AbortSignal,
  ): Promise<VmProcess | undefined> {
    if (!(await isAlive(identity))) return undefined;
    try {
      const qmp = await Qmp.open(controlSocket(confinement), withDeadline(signal, ADOPT_MS));
      const { onFault } = this.#options;
      return new QemuProcess({ confinement, identity, qmp, onFault });
    } catch (error) {
      signal.throwIfAborted();
      throw new MicrovmError('vm_gone', `the VM ${confinement.id} does not answer`, {
        cause: error,
      });
    }
  }

  /**
   * A VM process must never be able to write to the snapshot's memory file. QEMU before 8.2 opens the file for writing
   * even for a private mapping, so there each VM gets a copy (with shared blocks if the file system supports them).
   */
  async #memorySource(request: RestoreVmRequest, snapshot: string): Promise<MemorySource> {
    if (this.#options.version.privateReadOnlyMemory) {
      return { path: `${request.snapshot}/memory`, mapping: 'private-read-only' };
    }
    await this.#copy(request.confinement, join(snapshot, 'memory'), 'memory');
    return { path: `${request.confinement.insideDirectory}/memory`, mapping: 'private' };
  }

  async #copy(confinement: Confinement, from: string, name: string): Promise<void> {
    await copyFile(from, join(confinement.directory, name), constants.COPYFILE_FICLONE);
    await giveToVmUser(confinement, name);
  }
}

/** Creates an empty copy-on-write disk on top of a disk, with its size. */
async function createOverlay(path: string, disk: DiskImage): Promise<void> {
  const [top = ''] = disk.slice(-1);
  const format = disk.length > 1 ? 'qcow2' : 'raw';
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', format, '-b', top, path]);
}

/** Makes the VM's user the owner of a file. */
async function giveToVmUser({ directory, slot }: Confinement, name: string): Promise<void> {
  await chown(join(directory, name), slot.uid, slot.uid);
}
