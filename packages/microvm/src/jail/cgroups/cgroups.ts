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
   * Moves a VM to the group of its owner. All owners, and VMs without one, get equal shares of the processor while it is
   * scarce. On older kernels no program can start on the machine while this runs.
   */
  assign(id: string, owner: string, pid: number): Promise<void>;
  /** Removes the group of a VM, whose processes must have ended. Idempotent. */
  remove(id: string): Promise<void>;
  /** Removes the parent group and any groups that a crash left in it. */
  close(): Promise<void>;
}
