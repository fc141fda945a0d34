import type { NetworkSlot } from '../network/index.ts';

/** Where one VM process lives: its directory, as we and as it see it, and its network. */
export interface Confinement {
  readonly id: string;
  readonly slot: NetworkSlot;
  /** The VM's own directory on this machine, the only place it may write. */
  readonly directory: string;
  /** The same directory as the VM process sees it. */
  readonly insideDirectory: string;
  /** Where we reach the VM's sockets: a short path, since a socket's is limited to 107 bytes. */
  readonly socketDirectory: string;
  /** The words that run a program confined: own user, network, root directory, no privileges. */
  command(program: string, args: readonly string[]): [string, string[]];
  /**
   * Puts a started VM process under its resource limits. Whoever starts it does so before the guest serves
   * anybody; on older kernels, starting programs stands still meanwhile.
   */
  limit(pid: number): Promise<void>;
}
