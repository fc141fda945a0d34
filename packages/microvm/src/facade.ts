import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { SandboxSize } from '@svc/contract';

/** Every way in which an operation of a micro-VM can fail; stable, safe to branch on. */
export type MicrovmErrorCode =
  | 'unknown_template'
  | 'no_capacity'
  | 'disk_full'
  /** The disk of the machine that the VM runs on. */
  | 'host_disk_full'
  | 'boot_failed'
  | 'vm_gone'
  /** The VM lives, its guest does not answer or has dropped the connection. */
  | 'guest_unreachable'
  | 'timeout'
  | 'aborted'
  | 'parent_not_found'
  | 'is_directory'
  | 'file_not_found'
  | 'not_a_file'
  | 'permission_denied'
  | 'pause_failed'
  | 'resume_failed'
  | 'internal';

/** A failure of a micro-VM operation. `cause` keeps what lies underneath. */
export class MicrovmError extends Error {
  override readonly name = 'MicrovmError';
  readonly code: MicrovmErrorCode;

  constructor(code: MicrovmErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** One image that VMs can be restored from, with the sizes its snapshot was frozen at. */
export interface ImageInfo {
  readonly template: string;
  readonly id: string;
  /** File name of the root disk. */
  readonly rootfs: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** False while the image is still being built or is unusable. */
  readonly ready: boolean;
}

/** How a VM's memory and processors are laid out. A snapshot fits only the shape it was frozen at. */
export interface VmShape {
  readonly vcpu: number;
  readonly memoryMib: number;
}

/** Which VM to restore. */
export interface RestoreRequest {
  readonly id: string;
  readonly template: string;
  /** The guest's name from the start. Default: one made of the id. */
  readonly hostname?: string;
  /** Default: the image's own. A size for which no snapshot exists yet takes several seconds longer. */
  readonly size?: SandboxSize;
}

/** The name and environment that a VM gets when it is handed to its owner. */
export interface PersonalizeOptions {
  readonly hostname: string;
  readonly env: Record<string, string>;
}

/** Which of a command's two outputs a chunk came from. */
export type OutputStream = 'stdout' | 'stderr';

/** A shell command for the guest. */
export interface MicrovmExecRequest {
  readonly command: string;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Delivers stderr as stdout, both in the order they were written. */
  readonly mergeOutput?: boolean;
  /** Called for every chunk in order; while a returned promise is pending, no more is read (back-pressure). */
  onOutput(stream: OutputStream, chunk: Buffer): void | Promise<void>;
}

/** How a command in the guest ended; a signal is 128 + its number. */
export interface MicrovmExecResult {
  readonly exitCode: number;
}

/** A file on its way out of the guest. `size` is in bytes. */
export interface MicrovmDownload {
  readonly size: number;
  readonly stream: Readable;
}

/** One live micro-VM: reachable over its held-open channel until `exited` settles. */
export interface Microvm {
  readonly id: string;
  readonly template: string;
  /** File name of the image's root disk. */
  readonly image: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** Share of one core that each vCPU may use. */
  readonly cpuFraction: number;
  /** Address and port on this machine that reach the guest's SSH. */
  readonly host: string;
  readonly hostPort: number;
  /** Settles (never rejects) when the VM process is gone, whatever ended it. */
  readonly exited: Promise<{ reason: string }>;
  paused: boolean;
  /** Opaque JSON last given to `label`. */
  readonly labels: Record<string, unknown>;

  /** Replaces the labels, atomically and durably: they survive a crash of the worker. */
  label(data: Record<string, unknown>): Promise<void>;
  /** Gives the VM its owner's name and environment; part of the hand-over. */
  personalize(options: PersonalizeOptions, signal: AbortSignal): Promise<void>;
  /** Runs a command. Aborting kills its whole process group in the guest. Errors of this and of the transfers: host_disk_full. */
  exec(request: MicrovmExecRequest, signal: AbortSignal): Promise<MicrovmExecResult>;
  /** Streams `source` to `path` (temporary name, then rename). Errors: parent_not_found, is_directory, disk_full. */
  upload(path: string, source: Readable, signal: AbortSignal): Promise<void>;
  /** Streams a file out. Errors: file_not_found, is_directory. */
  download(path: string, signal: AbortSignal): Promise<MicrovmDownload>;
  /**
   * Connects to the agent runtime in the guest, within 5 s; the connection is the caller's, and is cut when the
   * VM ends or is let go. Errors: guest_unreachable, vm_gone.
   */
  dialAgent(signal: AbortSignal): Promise<Socket>;
  /** Stops the vCPUs and keeps memory and disk. Atomic: a failure leaves the VM running. */
  pause(signal: AbortSignal): Promise<void>;
  /** Lets a paused VM go on. Atomic: a failure leaves the VM paused. */
  resume(signal: AbortSignal): Promise<void>;
  /** Seconds of CPU used since the VM was restored. */
  cpuSeconds(): Promise<number>;
  /** Ends the VM; idempotent. Every resource it held is released when this settles. */
  destroy(): Promise<void>;
}

/** The micro-VMs of one worker process on one machine. */
export interface MicrovmHost {
  readonly accelerator: 'kvm' | 'tcg';
  /** Address of this machine that serves the guests: what listens there on a gateway port is reached by each of them. */
  readonly serviceAddress: string;
  images(): Promise<ImageInfo[]>;
  /** Restores, identifies and connects a VM that nobody owns yet. Rolls everything back when `signal` aborts. */
  restore(request: RestoreRequest, signal: AbortSignal): Promise<Microvm>;
  /**
   * Makes restores in another shape than the image's own quick, by freezing it in advance. Takes as long as a boot and
   * a warm-up, with lower priority than the VMs; done once on a machine, and does nothing then.
   */
  prepareShape(template: string, shape: VmShape, signal: AbortSignal): Promise<void>;
  /** After a restart: the VMs of this run directory that still live; leftovers of dead ones are cleaned up. */
  adopt(signal: AbortSignal): Promise<Microvm[]>;
  memoryAvailableMib(): number;
  diskAvailableMib(): Promise<number>;
  close(options: { readonly keepVms: boolean }): Promise<void>;
}
