import type {
  Capacity as CapacityReport,
  FreeCapacity,
  HeartbeatRequest,
  WorkerSandbox,
  WorkerTemplate,
} from '@svc/contract';
import type { ImageInfo } from '@svc/microvm';

/** A sandbox to report. */
interface ReportedSandbox {
  readonly isLive: boolean;
  record(): WorkerSandbox;
  refreshCpuSeconds(): Promise<void>;
}

interface Amounts {
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** The parts of a worker that a report describes. */
export interface ReportSources {
  readonly registry: { all(): ReportedSandbox[]; live(): ReportedSandbox[] };
  readonly capacity: {
    readonly limits: Amounts & { readonly vcpu: number };
    readonly free: Amounts;
    readonly memoryIsShort: boolean;
    diskIsShort(): Promise<boolean>;
  };
  /** `reserved`: the capacity held by idle VMs. */
  readonly pool: { readonly reserved: Amounts };
  readonly images: () => Promise<ImageInfo[]>;
}

/** A report. `acknowledge` is to be called once the control plane has received it. */
export interface Report {
  readonly body: HeartbeatRequest;
  acknowledge(): void;
}

/** Makes the reports about this worker: its capacity, the free part of it, and its sandboxes. */
export class WorkerReporter {
  readonly #sources: ReportSources;
  readonly #acknowledged = new WeakSet<ReportedSandbox>();

  constructor(sources: ReportSources) {
    this.#sources = sources;
  }

  /** Reports live and recently ended sandboxes. With `all`, includes ended ones that were reported before. */
  async make(all: boolean): Promise<Report> {
    const { registry, images } = this.#sources;
    await Promise.all(registry.live().map((sandbox) => sandbox.refreshCpuSeconds()));
    const templates = (await images()).map(templateOf);
    const free = await this.#free();
    // Taken last, and without awaiting anything in between, so that it is consistent.
    const reported = registry
      .all()
      .filter((one) => all || one.isLive || !this.#acknowledged.has(one));
    const ended = reported.filter((sandbox) => !sandbox.isLive);
    const sandboxes: WorkerSandbox[] = reported.map((sandbox) => sandbox.record());
    return {
      body: { capacity: this.#capacity(), free, templates, sandboxes },
      acknowledge: () => {
        for (const sandbox of ended) this.#acknowledged.add(sandbox);
      },
    };
  }

  #capacity(): CapacityReport {
    const { vcpu, memoryMib, diskMib } = this.#sources.capacity.limits;
    return {
      vcpu: Math.floor(vcpu),
      memory_mib: Math.floor(memoryMib),
      disk_mib: Math.floor(diskMib),
    };
  }

  /** Capacity for placements, including that of idle VMs, which are ended when it is needed. */
  async #free(): Promise<FreeCapacity> {
    const { capacity, pool } = this.#sources;
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
    agents: [...image.builds],
  };
}
