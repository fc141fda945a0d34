import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { MicrovmTree } from './guest/tree/guest-tree.ts';

/** What a VM gets when it is assigned to its owner. */
export interface PersonalizeOptions {
  readonly hostname: string;
  readonly env: Record<string, string>;
  /** Names the owner. While the processor is scarce, the VMs of each owner together get an equal share of it. */
  readonly owner?: string;
}

/** An output stream of a command. */
export type OutputStream = 'stdout' | 'stderr';

/** A shell command for the guest. */
export interface MicrovmExecRequest {
  readonly command: string;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Called for every chunk in order. Reading pauses while a returned promise is pending (back-pressure). */
  onOutput(stream: OutputStream, chunk: Buffer): void | Promise<void>;
}

/** The exit code of a command in the guest. A command killed by a signal has 128 plus the signal's number. */
export interface MicrovmExecResult {
  readonly exitCode: number;
}

/** A file being read from the guest. `size` is in bytes; undefined when only its end will tell, as of some in /proc. */
export interface MicrovmDownload {
  readonly size: number | undefined;
  readonly stream: Readable;
}

/** One live micro-VM, connected until `exited` settles. */
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
  /** Address and port on this machine that reach the guest's SSH server. */
  readonly host: string;
  readonly hostPort: number;
  /** Settles (never rejects) when the VM process has ended, for any reason. */
  readonly exited: Promise<{ reason: string }>;
  paused: boolean;
  /** The JSON object last given to `label`, opaque to this package. */
  readonly labels: Record<string, unknown>;

  /** Replaces the labels, atomically. They survive a crash of the worker. */
  label(data: Record<string, unknown>): Promise<void>;
  /** Gives the VM the name and environment of its owner, and soon after its share of the processor. */
  personalize(options: PersonalizeOptions, signal: AbortSignal): Promise<void>;
  /** Runs a command. Aborting kills every process it started. Errors of this and of the transfers: host_disk_full. */
  exec(request: MicrovmExecRequest, signal: AbortSignal): Promise<MicrovmExecResult>;
  /** Checks that a command can start in this directory. Errors: cwd_not_found. */
  checkDirectory(path: string, signal: AbortSignal): Promise<void>;
  /**
   * Streams `source` into `path`, by way of a temporary file. Symbolic links are followed and stay.
   * Errors: parent_not_found, parent_not_directory, symlink_loop, is_directory, not_a_file, disk_full.
   */
  upload(path: string, source: Readable, signal: AbortSignal): Promise<void>;
  /** Streams a file from the guest. Errors: file_not_found, parent_not_directory, symlink_loop, is_directory, not_a_file. */
  download(path: string, signal: AbortSignal): Promise<MicrovmDownload>;
  /** The files below a directory of the guest, given as an absolute path. Its methods fail when the VM ends. */
  tree(root: string): MicrovmTree;
  /**
   * Connects to the agent runtime in the guest, within 5 s. The caller owns the connection, which is closed when the
   * VM ends or is detached. Errors: guest_unreachable, vm_gone.
   */
  dialAgent(signal: AbortSignal): Promise<Socket>;
  /**
   * Connects to a server on the guest's loopback address, within 15 s. The caller owns the connection, which is closed
   * when the VM ends or is detached. Errors: port_unreachable, guest_unreachable, timeout, vm_gone.
   */
  dialPort(port: number, signal: AbortSignal): Promise<Socket>;
  /** Stops the vCPUs and keeps memory and disk. Atomic: after a failure the VM is running. */
  pause(signal: AbortSignal): Promise<void>;
  /**
   * Like {@link pause}, for a VM that must not run, whatever happens: after a failure the VM may be stopped. Call it again, or
   * {@link resume}.
   */
  hold(signal: AbortSignal): Promise<void>;
  /** Lets a paused VM run again. Atomic: after a failure the VM is paused. */
  resume(signal: AbortSignal): Promise<void>;
  /** Seconds of CPU time used since the VM was restored. */
  cpuSeconds(): Promise<number>;
  /** Bytes of the machine's disk that the VM's files hold. */
  diskUsedBytes(): Promise<number>;
  /** Ends the VM. Idempotent. When this settles, all resources of the VM are released. */
  destroy(): Promise<void>;
}
