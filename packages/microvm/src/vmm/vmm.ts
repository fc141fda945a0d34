import type { ProcessIdentity } from '@svc/service-kit/process';
import type { DiskImage } from '../disk-image.ts';
import type { Confinement } from '../jail/confinement.ts';
import type { VmShape } from '../vm-shape.ts';

/** A VM to boot from a kernel, so that a snapshot can be taken. */
export interface BootRequest extends VmShape {
  readonly confinement: Confinement;
  readonly kernel: string;
  readonly initrd: string;
  /** The root disk, as paths inside the jail. */
  readonly rootfs: DiskImage;
}

/** A VM to restore from a snapshot. */
export interface RestoreVmRequest extends VmShape {
  readonly confinement: Confinement;
  readonly rootfs: DiskImage;
  /** The snapshot's directory, as a path inside the jail. */
  readonly snapshot: string;
}

/** One VM process of a virtual machine monitor. Every method has a deadline of its own. */
export interface VmProcess {
  readonly identity: ProcessIdentity;
  /** Settles (never rejects) when the process has ended. */
  readonly exited: Promise<void>;
  /** True while the VM is stopped because the machine's disk is full. It continues when space is available. */
  readonly stalled: boolean;
  isPaused(signal: AbortSignal): Promise<boolean>;
  pause(signal: AbortSignal): Promise<void>;
  resume(signal: AbortSignal): Promise<void>;
  /** Enlarges the disk of the running guest to `bytes`. */
  growDisk(bytes: number, signal: AbortSignal): Promise<void>;
  /** Stops the VM permanently and writes its snapshot to its own directory: `memory`, `state` and `disk.qcow2`. */
  freeze(signal: AbortSignal): Promise<void>;
  /** Kills the process and waits until it has ended. Idempotent. */
  kill(): Promise<void>;
  /** Closes the connection to the process and leaves it running. */
  detach(): void;
}

/** A virtual machine monitor. Each driver implements this interface in a folder of its own. */
export interface Vmm {
  readonly accelerator: 'kvm' | 'tcg';
  /** Identifies everything except the shape that a snapshot depends on: monitor, version, accelerator, processor. */
  readonly snapshotKey: string;
  boot(request: BootRequest, signal: AbortSignal): Promise<VmProcess>;
  /** Loads a snapshot and runs the VM. The VM process can never write to the snapshot's memory file. */
  restore(request: RestoreVmRequest, signal: AbortSignal): Promise<VmProcess>;
  /** Takes over a VM that an earlier process started. Undefined when it has ended. Throws `vm_gone` when it does not answer. */
  adopt(
    confinement: Confinement,
    identity: ProcessIdentity,
    signal: AbortSignal,
  ): Promise<VmProcess | undefined>;
}
