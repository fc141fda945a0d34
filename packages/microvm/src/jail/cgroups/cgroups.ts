/** What one VM process may use of the machine. */
export interface ResourceLimits {
  /** Cores' worth of processor time. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** Threads and processes. */
  readonly tasks: number;
}

/** One group of processes a VM, under one parent a service. */
export interface Cgroups {
  readonly kind: 'v1' | 'v2' | 'none';
  add(id: string, limits: ResourceLimits, pid: number): Promise<void>;
  /** Takes the VM's group away; its processes must have ended. Idempotent. */
  remove(id: string): Promise<void>;
  /** Takes away the parent and what a crash left in it. */
  close(): Promise<void>;
}
