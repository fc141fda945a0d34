import type { ProcessIdentity } from '@svc/service-kit/process';
import type { VmShape } from '../facade.ts';
import type { Confinement } from '../jail/confinement.ts';

export type { VmShape };

/** A VM that starts from its kernel, with memory that can be frozen. */
export interface BootRequest extends VmShape {
  readonly confinement: Confinement;
  readonly kernel: string;
  readonly initrd: string;
  /** Read-only root disk image, raw, seen from inside the confinement. */
  readonly rootfs: string;
}

/** A VM that goes on where a snapshot was frozen. */
export interface RestoreVmRequest extends VmShape {
  readonly confinement: Confinement;
  readonly rootfs: string;
  /** The snapshot's folder, seen from inside the confinement. */
  readonly snapshot: string;
}

/** One running VM process of a virtual machine monitor. Every call has its own deadline. */
export interface VmProcess {
  readonly identity: ProcessIdentity;
  /** Settles (never rejects) once the process is gone. */
  readonly exited: Promise<void>;
  /** The machine's disk is too full for what the guest writes: it stands still, and goes on when there is room. */
  readonly stalled: boolean;
  isPaused(signal: AbortSignal): Promise<boolean>;
  pause(signal: AbortSignal): Promise<void>;
  resume(signal: AbortSignal): Promise<void>;
  /** Makes the disk larger under the running guest. */
  growDisk(bytes: number, signal: AbortSignal): Promise<void>;
  /** Freezes the VM into its own directory as `memory`, `state` and `disk.qcow2`; it does not run again. */
  freeze(signal: AbortSignal): Promise<void>;
  /** Ends the process at once and waits until it is gone. Idempotent. */
  kill(): Promise<void>;
  /** Lets go of the process without ending it. */
  detach(): void;
}

/** A virtual machine monitor: the one interface that a driver implements, each in its own folder. */
export interface Vmm {
  readonly accelerator: 'kvm' | 'tcg';
  /** Names everything beside the shape that a snapshot depends on: monitor, version, accelerator, processor. */
  readonly snapshotKey: string;
  boot(request: BootRequest, signal: AbortSignal): Promise<VmProcess>;
  /** Loads the snapshot and lets it run. The template's memory is never writable to the VM process. */
  restore(request: RestoreVmRequest, signal: AbortSignal): Promise<VmProcess>;
  /** Takes over a VM that an earlier process of ours started; undefined when it is gone or does not answer. */
  adopt(
    confinement: Confinement,
    identity: ProcessIdentity,
    signal: AbortSignal,
  ): Promise<VmProcess | undefined>;
}
