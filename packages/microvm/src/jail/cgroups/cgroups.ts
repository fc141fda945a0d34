/** The share of the machine that one VM process may use. */
export interface ResourceLimits {
  /** Processor time, in cores. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** Number of threads and processes. */
  readonly tasks: number;
}

/** Control groups: one per VM, in a common parent group per service. */
export interface Cgroups {
  readonly kind: 'v1' | 'v2' | 'none';
  add(id: string, limits: ResourceLimits, pid: number): Promise<void>;
  /** Removes the group of a VM, whose processes must have ended. Idempotent. */
  remove(id: string): Promise<void>;
  /** Removes the parent group and any groups that a crash left in it. */
  close(): Promise<void>;
}
