import type {
  Capacity as CapacityReport,
  FreeCapacity,
  HeartbeatRequest,
  WorkerSandbox,
  WorkerTemplate,
} from '@svc/contract';
import type { ImageInfo } from '@svc/microvm';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Capacity } from '../vms/capacity/capacity.ts';
import type { Pool } from '../vms/pool/pool.ts';

export interface ReportDeps {
  readonly registry: SandboxRegistry;
  readonly capacity: Capacity;
  readonly pool: Pool;
  readonly images: () => Promise<ImageInfo[]>;
}

/** A report, and what to do once it has arrived. */
export interface Report {
  readonly body: HeartbeatRequest;
  acknowledge(): void;
}

/** Makes the reports about this worker: what it can hold, what it has left, what lives on it. */
export class Reporter {
  readonly #deps: ReportDeps;
  readonly #acknowledged = new WeakSet<Sandbox>();

  constructor(deps: ReportDeps) {
    this.#deps = deps;
  }

  /** Everything that lives and what ended lately. With `all`, also ended sandboxes that were reported before. */
  async make(all: boolean): Promise<Report> {
    const { registry, images } = this.#deps;
    await Promise.all(registry.live().map((sandbox) => sandbox.refreshCpuSeconds()));
    const templates = (await images()).map(templateOf);
    const free = await this.#free();
    // Last, and at one moment: from here on nothing is awaited.
    const told = registry.all().filter((one) => all || one.isLive || !this.#acknowledged.has(one));
    const ended = told.filter((sandbox) => !sandbox.isLive);
    const sandboxes: WorkerSandbox[] = told.map((sandbox) => sandbox.record());
    return {
      body: { capacity: this.#capacity(), free, templates, sandboxes },
      acknowledge: () => {
        for (const sandbox of ended) this.#acknowledged.add(sandbox);
      },
    };
  }

  #capacity(): CapacityReport {
    const { vcpu, memoryMib, diskMib } = this.#deps.capacity.limits;
    return {
      vcpu: Math.floor(vcpu),
      memory_mib: Math.floor(memoryMib),
      disk_mib: Math.floor(diskMib),
    };
  }

  /** What a placement can count on: idle VMs of the pool make room when it is needed. */
  async #free(): Promise<FreeCapacity> {
    const { capacity, pool } = this.#deps;
    const { memoryMib, diskMib } = capacity.free;
    const idle = pool.reserved;
    const diskIsShort = await capacity.diskIsShort();
    return {
      memory_mib: capacity.memoryIsShort ? 0 : Math.floor(memoryMib + idle.memoryMib),
      disk_mib: diskIsShort ? 0 : Math.floor(diskMib + idle.diskMib),
    };
  }
}

function templateOf(image: ImageInfo): WorkerTemplate {
  return {
    template: image.template,
    image: image.id,
    ready: image.ready,
    vcpu: image.vcpu,
    memory_mib: image.memoryMib,
    disk_mib: image.diskMib,
  };
}
