import { access } from 'node:fs/promises';
import { CgroupsV1 } from './v1.ts';
import { CgroupsV2 } from './v2.ts';

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

/** The machine's kind of control groups. `none` where they are missing or not ours to write. */
export async function openCgroups(name: string, warn: (message: string) => void): Promise<Cgroups> {
  const attempts = [() => CgroupsV2.open(name), () => CgroupsV1.open(name)];
  if (await exists('/sys/fs/cgroup/memory')) attempts.reverse();
  const reasons: string[] = [];
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error));
    }
  }
  warn(`sandboxes run without limits on processor and memory: ${reasons.join('; ')}`);
  return noCgroups;
}

const noCgroups: Cgroups = {
  kind: 'none',
  add: async () => undefined,
  remove: async () => undefined,
  close: async () => undefined,
};

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
