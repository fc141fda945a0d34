import { access, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Cgroups, ResourceLimits } from './cgroups.ts';
import { CPU_PERIOD_US, makeGroup } from './group-files.ts';
import { OwnerGroups } from './owner-groups.ts';

const ROOT = '/sys/fs/cgroup';
const CONTROLLERS = '+cpu +memory +pids';
const DEFAULT_WEIGHT = 100;
const MAX_WEIGHT = 10_000;
const LIMITS = ['cpu.max', 'memory.max', 'pids.max'];

/** The unified hierarchy. https://docs.kernel.org/admin-guide/cgroup-v2.html */
export class CgroupsV2 implements Cgroups {
  readonly kind = 'v2';
  readonly #groups: OwnerGroups;

  private constructor(groups: OwnerGroups) {
    this.#groups = groups;
  }

  static async open(name: string): Promise<CgroupsV2> {
    await access(join(ROOT, 'cgroup.controllers'));
    await writeFile(join(ROOT, 'cgroup.subtree_control'), CONTROLLERS);
    const path = join(ROOT, name);
    // All VMs together get the weight of one group per core, so that the service stays responsive.
    const weight = Math.min(MAX_WEIGHT, DEFAULT_WEIGHT * availableParallelism());
    await makeGroup(path, { 'cgroup.subtree_control': CONTROLLERS, 'cpu.weight': weight });
    const owner = { 'cgroup.subtree_control': CONTROLLERS, 'cpu.weight': DEFAULT_WEIGHT };
    const ofOwner = { file: 'cpu.weight', full: DEFAULT_WEIGHT };
    return new CgroupsV2(await OwnerGroups.open({ path, owner, limits: LIMITS, weight: ofOwner }));
  }

  async add(
    id: string,
    limits: ResourceLimits,
    pid: number,
    owner: string | undefined,
  ): Promise<void> {
    await this.#groups.make(id, owner, {
      'cpu.weight': DEFAULT_WEIGHT,
      'cpu.max': `${Math.round(limits.cores * CPU_PERIOD_US)} ${CPU_PERIOD_US}`,
      'memory.max': limits.memoryBytes,
      'pids.max': limits.tasks,
      'cgroup.procs': pid,
    });
  }

  /** Memory that the VM has by now stays charged to the group of the service; its limit is for what comes. */
  async assign(id: string, owner: string, pid: number): Promise<void> {
    await this.#groups.move(id, owner, pid);
  }

  async balance(): Promise<void> {
    await this.#groups.balance();
  }

  /** Every process is in the group of some manager. */
  async favour(): Promise<void> {}

  async remove(id: string): Promise<void> {
    await this.#groups.remove(id);
  }

  async close(): Promise<void> {
    await this.#groups.close();
  }
}
