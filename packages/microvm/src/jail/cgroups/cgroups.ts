/** The share of the machine that one VM process may use. */
export interface ResourceLimits {
  /** Processor time, in cores. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** Number of threads and processes. */
  readonly tasks: number;
}

/** Control groups: one per VM, in one per owner of VMs, in one per service. VMs without an owner are in that of the service. */
export interface Cgroups {
  readonly kind: 'v1' | 'v2' | 'none';
  /** Limits a VM: in the group of its owner, or in that of the service until it has one. */
  add(id: string, limits: ResourceLimits, pid: number, owner: string | undefined): Promise<void>;
  /**
   * Moves a VM to the group of its owner. While the processor is scarce, owners get equal shares of it, see `balance`, and so does
   * each VM without one: the pool is filled one at a time, and every owner waits for it when it is empty. On older kernels no program can start on the machine while this runs.
   */
  assign(id: string, owner: string, pid: number): Promise<void>;
  /**
   * Gives owners whose VMs have wanted more than one core since the last time a smaller share, at least a quarter. Call it
   * every few seconds.
   */
  balance(): Promise<void>;
  /**
   * Has the service get the processor before its VMs: moves its process, and so what it starts from now on, to a group with
   * several times the weight of all VMs together. Does nothing where somebody else has put it into a group, such as the
   * service manager, which is always so in the unified hierarchy.
   */
  favour(pid: number): Promise<void>;
  /** Removes the group of a VM, whose processes must have ended. Idempotent. */
  remove(id: string): Promise<void>;
  /** Removes the parent group and any groups that a crash left in it, and moves the service back to where it was. */
  close(): Promise<void>;
}
