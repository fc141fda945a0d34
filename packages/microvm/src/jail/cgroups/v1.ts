import { access, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runEveryStep } from '@svc/service-kit/concurrency';
import type { Cgroups, ResourceLimits } from './cgroups.ts';
import { CPU_PERIOD_US, makeGroup, removeGroup, removeTree } from './group-files.ts';

const ROOT = '/sys/fs/cgroup';
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
const SHARES_PER_CORE = 1024;

/** The older interface, with one hierarchy per controller. https://docs.kernel.org/admin-guide/cgroup-v1/ */
export class CgroupsV1 implements Cgroups {
  readonly kind = 'v1';
  readonly #name: string;

  private constructor(name: string) {
    this.#name = name;
  }

  static async open(name: string): Promise<CgroupsV1> {
    for (const controller of CONTROLLERS) await access(join(ROOT, controller, 'cgroup.procs'));
    const groups = new CgroupsV1(name);
    // All VMs together get the weight of one busy process per core, so that the service stays responsive.
    const shares = SHARES_PER_CORE * availableParallelism();
    await makeGroup(groups.#path('cpu'), { 'cpu.shares': shares });
    await makeGroup(groups.#path('memory'), {});
    await makeGroup(groups.#path('pids'), {});
    return groups;
  }

  async add(id: string, limits: ResourceLimits, pid: number): Promise<void> {
    await makeGroup(this.#path('cpu', id), {
      'cpu.cfs_period_us': CPU_PERIOD_US,
      'cpu.cfs_quota_us': Math.round(limits.cores * CPU_PERIOD_US),
    });
    await makeGroup(this.#path('memory', id), { 'memory.limit_in_bytes': limits.memoryBytes });
    await makeGroup(this.#path('pids', id), { 'pids.max': limits.tasks });
    for (const controller of CONTROLLERS) {
      await writeFile(join(this.#path(controller, id), 'cgroup.procs'), String(pid));
    }
  }

  async remove(id: string): Promise<void> {
    await this.#ofEveryController((controller) => removeGroup(this.#path(controller, id)));
  }

  async close(): Promise<void> {
    await this.#ofEveryController((controller) => removeTree(this.#path(controller)));
  }

  async #ofEveryController(remove: (controller: string) => Promise<void>): Promise<void> {
    await runEveryStep(
      CONTROLLERS.map((controller) => ({
        name: `remove a group of ${controller}`,
        run: () => remove(controller),
      })),
    );
  }

  #path(controller: string, id = ''): string {
    return join(ROOT, controller, this.#name, id);
  }
}
