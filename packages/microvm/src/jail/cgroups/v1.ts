import { access, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type CleanupStep, runEveryStep } from '@svc/service-kit/concurrency';
import type { Cgroups, ResourceLimits } from './cgroups.ts';
import { CPU_PERIOD_US, makeGroup, removeGroup, removeTree } from './group-files.ts';
import { OwnerGroups } from './owner-groups.ts';
import { ServiceGroup } from './service-group.ts';

const ROOT = '/sys/fs/cgroup';
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
/** The controllers that know no owners. */
const FLAT = ['memory', 'pids'] as const;
const CPU_LIMITS = ['cpu.cfs_period_us', 'cpu.cfs_quota_us'];
const SHARES_PER_CORE = 1024;
/** That of the service, of the weight of all VMs together. It seldom wants much, but everybody's requests wait for it. */
const SERVICE_WEIGHT = 4;

/** The older interface, with one hierarchy per controller. https://docs.kernel.org/admin-guide/cgroup-v1/ */
export class CgroupsV1 implements Cgroups {
  readonly kind = 'v1';
  readonly #name: string;
  readonly #cpu: OwnerGroups;
  readonly #service: ServiceGroup;

  private constructor(name: string, cpu: OwnerGroups) {
    this.#name = name;
    this.#cpu = cpu;
    const shares = SHARES_PER_CORE * availableParallelism() * SERVICE_WEIGHT;
    this.#service = new ServiceGroup(join(ROOT, 'cpu'), `${name}-service`, shares);
  }

  static async open(name: string): Promise<CgroupsV1> {
    for (const controller of CONTROLLERS) await access(join(ROOT, controller, 'cgroup.procs'));
    // All VMs together get the weight of one busy process per core.
    const shares = SHARES_PER_CORE * availableParallelism();
    const path = join(ROOT, 'cpu', name);
    await makeGroup(path, { 'cpu.shares': shares });
    for (const controller of FLAT) await makeGroup(join(ROOT, controller, name), {});
    const owner = { 'cpu.shares': SHARES_PER_CORE };
    const weight = { file: 'cpu.shares', full: SHARES_PER_CORE };
    return new CgroupsV1(name, await OwnerGroups.open({ path, owner, limits: CPU_LIMITS, weight }));
  }

  async add(
    id: string,
    limits: ResourceLimits,
    pid: number,
    owner: string | undefined,
  ): Promise<void> {
    const cpu = await this.#cpu.make(id, owner, {
      'cpu.cfs_period_us': CPU_PERIOD_US,
      'cpu.cfs_quota_us': Math.round(limits.cores * CPU_PERIOD_US),
      'cpu.shares': SHARES_PER_CORE,
    });
    await makeGroup(this.#path('memory', id), { 'memory.limit_in_bytes': limits.memoryBytes });
    await makeGroup(this.#path('pids', id), { 'pids.max': limits.tasks });
    const groups = [cpu, ...FLAT.map((controller) => this.#path(controller, id))];
    for (const group of groups) await writeFile(join(group, 'cgroup.procs'), String(pid));
  }

  async assign(id: string, owner: string, pid: number): Promise<void> {
    await this.#cpu.move(id, owner, pid);
  }

  async balance(): Promise<void> {
    await this.#cpu.balance();
  }

  async favour(pid: number): Promise<void> {
    await this.#service.enter(pid);
  }

  async remove(id: string): Promise<void> {
    await runEveryStep([
      { name: 'remove a group of cpu', run: () => this.#cpu.remove(id) },
      ...this.#flat((controller) => removeGroup(this.#path(controller, id))),
    ]);
  }

  async close(): Promise<void> {
    await runEveryStep([
      { name: 'remove the group of the service', run: () => this.#service.remove() },
      { name: 'remove the groups of cpu', run: () => this.#cpu.close() },
      ...this.#flat((controller) => removeTree(this.#path(controller))),
    ]);
  }

  #flat(remove: (controller: string) => Promise<void>): CleanupStep[] {
    return FLAT.map((controller) => ({
      name: `remove a group of ${controller}`,
      run: () => remove(controller),
    }));
  }

  #path(controller: string, id = ''): string {
    return join(ROOT, controller, this.#name, id);
  }
}
