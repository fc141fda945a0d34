import type {
  Capacity as CapacityReport,
  FreeCapacity,
  HeartbeatRequest,
  RenewLeaseRequest,
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
export interface Report<Body> {
  readonly body: Body;
  acknowledge(): void;
}

/** Makes the reports about this worker: its capacity, the free part of it, and its sandboxes. */
export class WorkerReporter {
  readonly #sources: ReportSources;
  /** What the control plane has received last, as text. */
  readonly #received = new WeakMap<ReportedSandbox, string>();
  #receivedFacts: string | undefined;

  constructor(sources: ReportSources) {
    this.#sources = sources;
  }

  /** Reports live and recently ended sandboxes. With `all`, includes ended ones that were reported before. */
  async complete(all: boolean): Promise<Report<HeartbeatRequest>> {
    const facts = await this.#facts();
    const free = await this.#free();
    const { sandboxes, acknowledge } = this.#report(facts, (one) => all || one.isLive);
    return { body: { ...facts, free, sandboxes }, acknowledge };
  }

  /** Reports only what the control plane has not received yet. */
  async changes(): Promise<Report<RenewLeaseRequest>> {
    const facts = await this.#facts();
    const free = await this.#free();
    const changed = JSON.stringify(facts) === this.#receivedFacts ? {} : facts;
    const { sandboxes, acknowledge } = this.#report(facts, () => false);
    return { body: { ...changed, free, sandboxes }, acknowledge };
  }

  async #facts() {
    const { registry, images } = this.#sources;
    await Promise.all(registry.live().map((sandbox) => sandbox.refreshCpuSeconds()));
    return { capacity: this.#capacity(), templates: (await images()).map(templateOf) };
  }

  /** To be called last, and without awaiting anything before the report is sent, so that it is consistent. */
  #report(facts: object, isWanted: (sandbox: ReportedSandbox) => boolean) {
    const reported = this.#sources.registry
      .all()
      .map((sandbox) => {
        const record = sandbox.record();
        return { sandbox, record, essence: essenceOf(record) };
      })
      .filter(
        ({ sandbox, essence }) => isWanted(sandbox) || this.#received.get(sandbox) !== essence,
      );
    return {
      sandboxes: reported.map(({ record }) => record),
      acknowledge: () => {
        this.#receivedFacts = JSON.stringify(facts);
        for (const { sandbox, essence } of reported) this.#received.set(sandbox, essence);
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

/**
 * What makes a record worth another report. An idle VM needs less than a second of a processor for a long time, and an end
 * only gets older.
 */
function essenceOf({ end_age_ms: _age, ...record }: WorkerSandbox): string {
  return JSON.stringify({ ...record, cpu_seconds: Math.floor(record.cpu_seconds) });
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
