import { access, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Cgroups, ResourceLimits } from './cgroups.ts';
import { CPU_PERIOD_US, makeGroup, removeGroup, removeTree } from './group-files.ts';

const ROOT = '/sys/fs/cgroup';
const CONTROLLERS = '+cpu +memory +pids';
const DEFAULT_WEIGHT = 100;
const MAX_WEIGHT = 10_000;

/** The unified hierarchy. https://docs.kernel.org/admin-guide/cgroup-v2.html */
export class CgroupsV2 implements Cgroups {
  readonly kind = 'v2';
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(name: string): Promise<CgroupsV2> {
    await access(join(ROOT, 'cgroup.controllers'));
    await writeFile(join(ROOT, 'cgroup.subtree_control'), CONTROLLERS);
    const groups = new CgroupsV2(join(ROOT, name));
    // All VMs together get the weight of one group per core, so that the service stays responsive.
    const weight = Math.min(MAX_WEIGHT, DEFAULT_WEIGHT * availableParallelism());
    await makeGroup(groups.#path, {
      'cgroup.subtree_control': CONTROLLERS,
      'cpu.weight': weight,
    });
    return groups;
  }

  async add(id: string, limits: ResourceLimits, pid: number): Promise<void> {
    await makeGroup(join(this.#path, id), {
      'cpu.max': `${Math.round(limits.cores * CPU_PERIOD_US)} ${CPU_PERIOD_US}`,
      'memory.max': limits.memoryBytes,
      'pids.max': limits.tasks,
      'cgroup.procs': pid,
    });
  }

  async remove(id: string): Promise<void> {
    await removeGroup(join(this.#path, id));
  }

  async close(): Promise<void> {
    await removeTree(this.#path);
  }
}
