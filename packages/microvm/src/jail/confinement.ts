import type { NetworkSlot } from '../network/index.ts';

/** The confinement of one VM process: its directory, as seen from outside and inside the jail, and its network. */
export interface Confinement {
  readonly id: string;
  readonly slot: NetworkSlot;
  /** The VM's directory on this machine, the only one it may write to. */
  readonly directory: string;
  /** The same directory as the VM process sees it. */
  readonly insideDirectory: string;
  /** `directory` by a path that is short enough for sockets, whose paths are limited to 107 bytes. */
  readonly socketDirectory: string;
  /** What this service keeps about the VM, where the VM process can change nothing. As short as `socketDirectory`. */
  readonly hostDirectory: string;
  /** The command that runs a program confined: own user, network and root directory, no privileges. */
  command(program: string, args: readonly string[]): [string, string[]];
  /**
   * Applies the resource limits to a started VM process, which shares the processor with the other VMs of its owner if it
   * has one. Call it before the guest is used. On older kernels no program can start on the machine while this runs.
   */
  limit(pid: number, owner?: string): Promise<void>;
}
