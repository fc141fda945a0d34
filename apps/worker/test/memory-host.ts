import {
  type ImageInfo,
  type Microvm,
  MicrovmError,
  type MicrovmHost,
  type RestoreRequest,
  type VmShape,
} from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { CapacityLimits } from '../src/vms/capacity/capacity.ts';
import { MemoryMicrovm } from './memory-microvm.ts';

/** The one image that the host has unless a test changes it. */
export const STANDARD: ImageInfo = {
  template: 'standard',
  id: 'standard-1',
  rootfs: 'standard-1.img',
  vcpu: 1,
  memoryMib: 512,
  diskMib: 1024,
  builds: [{ kind: 'codex', version: '1.2.3' }],
  idleWarmUp: [],
  ready: true,
};

/** More than any test uses, on a machine with enough memory and disk. */
export const LIMITS: CapacityLimits = {
  vcpu: 64,
  memoryMib: 65_536,
  diskMib: 131_072,
  minFreeMemoryMib: 512,
  minFreeDiskMib: 1024,
  memoryPerPendingMib: 0,
};

/** A host of VMs that exist in memory only. They outlive it: pass `vms` to another host to simulate a restart. */
export class MemoryHost implements MicrovmHost {
  readonly accelerator = 'tcg';
  readonly serviceAddress = '127.0.0.1';
  readonly vms: Set<MemoryMicrovm>;
  readonly requests: RestoreRequest[] = [];
  currentImages: ImageInfo[] = [STANDARD];
  memoryMib = 16_384;
  diskMib = 100_000;
  /** Every restore waits for this. */
  gate: Promise<void> = Promise.resolve();
  /** Returns the failure of the next restore, if it is to fail. */
  failure: () => Error | undefined = () => undefined;
  /** Called with each new VM before it is returned. */
  onRestored: (vm: MemoryMicrovm) => void = () => undefined;
  /** The shapes that were prepared. */
  readonly prepared: { template: string; vcpu: number; memoryMib: number }[] = [];
  /** Every preparation waits for this. */
  prepareGate: Promise<void> = Promise.resolve();
  /** Returns the failure of the next preparation, if it is to fail. */
  prepareFailure: () => Error | undefined = () => undefined;
  restoring = 0;
  mostRestoring = 0;

  constructor(vms: Iterable<MemoryMicrovm> = []) {
    this.vms = new Set(vms);
  }

  get live(): MemoryMicrovm[] {
    return [...this.vms].filter((vm) => !vm.isGone);
  }

  /** The live VM of this sandbox. */
  vmOf(vmId: string): MemoryMicrovm {
    const found = this.live.find((vm) => vm.labels.vm_id === vmId);
    if (found === undefined) throw new Error(`no VM of ${vmId}`);
    return found;
  }

  /** Sets the agent runtime of every VM that is restored from now on. */
  runGuest({ port }: { readonly port: number }): void {
    this.onRestored = (vm) => {
      vm.agentPort = port;
    };
  }

  async images(): Promise<ImageInfo[]> {
    return this.currentImages;
  }

  async restore(request: RestoreRequest, signal: AbortSignal): Promise<Microvm> {
    this.requests.push(request);
    this.restoring += 1;
    this.mostRestoring = Math.max(this.mostRestoring, this.restoring);
    try {
      await untilAborted(this.gate, signal);
      signal.throwIfAborted();
      const failure = this.failure();
      if (failure !== undefined) throw failure;
      return this.#make(request);
    } finally {
      this.restoring -= 1;
    }
  }

  async hasShape(template: string, shape: VmShape): Promise<boolean> {
    const image = this.currentImages.find((known) => known.template === template);
    return [...this.prepared, image].some(
      (known) =>
        known?.template === template &&
        known.vcpu === shape.vcpu &&
        known.memoryMib === shape.memoryMib,
    );
  }

  async prepareShape(template: string, { vcpu, memoryMib }: VmShape): Promise<void> {
    this.prepared.push({ template, vcpu, memoryMib });
    await this.prepareGate;
    const failure = this.prepareFailure();
    if (failure !== undefined) throw failure;
  }

  async adopt(): Promise<Microvm[]> {
    return this.live;
  }

  memoryAvailableMib(): number {
    return this.memoryMib;
  }

  async diskAvailableMib(): Promise<number> {
    return this.diskMib;
  }

  async diskUsedMib(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {
    for (const vm of this.live) vm.die('closed');
  }

  #make(request: RestoreRequest): MemoryMicrovm {
    const image = this.currentImages.find(({ template }) => template === request.template);
    if (image === undefined) throw new MicrovmError('unknown_template', 'no such image');
    const vm: MemoryMicrovm = new MemoryMicrovm(
      {
        id: request.id,
        template: request.template,
        image: image.rootfs,
        vcpu: request.size?.vcpu ?? image.vcpu,
        memoryMib: request.size?.memory_mib ?? image.memoryMib,
        diskMib: request.size?.disk_mib ?? image.diskMib,
      },
      () => this.vms.delete(vm),
    );
    this.vms.add(vm);
    this.onRestored(vm);
    return vm;
  }
}
