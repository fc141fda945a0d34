import type { ImageInfo, Microvm } from '@svc/microvm';
import { retry, runEveryStep } from '@svc/service-kit/concurrency';
import type { Reservation } from '../capacity/capacity.ts';
import { PoolTurns } from './pool-turns.ts';

const DESTROY_RETRIES = { attempts: 3, baseMs: 250 };

/** An idle VM with its reserved capacity. Taking it from the pool transfers the ownership of both. */
export interface PooledVm {
  readonly vm: Microvm;
  readonly reservation: Reservation;
}

export interface PoolOptions {
  /** Called with each VM that leaves the pool and may have to be replaced. */
  readonly onTaken: (taken: PooledVm) => void;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, action: string) => void;
}

/** The idle VMs by template. Only stores them; the pool keeper fills it. */
export class Pool {
  readonly #targets: ReadonlyMap<string, number>;
  readonly #idle = new Map<string, PooledVm[]>();
  readonly #turns = new PoolTurns();
  readonly #options: PoolOptions;
  #closed = false;

  constructor(targets: ReadonlyMap<string, number>, options: PoolOptions) {
    this.#targets = targets;
    this.#options = options;
  }

  /** Removes and returns the oldest VM of this image, if there is one for the tenant. See {@link PoolTurns}. */
  take(image: ImageInfo, tenantId: string): PooledVm | undefined {
    const { template } = image;
    const idle = this.#idle.get(template) ?? [];
    if (!this.#turns.mayTake(template, tenantId, idle.length)) return undefined;
    const index = idle.findIndex(({ vm }) => vm.image === image.rootfs);
    if (index === -1) return undefined;
    const [taken] = idle.splice(index, 1);
    if (taken !== undefined) this.#options.onTaken(taken);
    return taken;
  }

  /** Adds an idle VM. Returns false when the pool is closed or full; the caller then still owns the VM. */
  put(pooled: PooledVm): boolean {
    const { template } = pooled.vm;
    if (this.#closed || this.missing(template) <= 0) return false;
    this.#of(template).push(pooled);
    void pooled.vm.exited.then(() => this.#forget(pooled));
    return true;
  }

  /** Removes and returns the least valuable VM: the newest one of the template with the most. */
  evict(): PooledVm | undefined {
    const fullest = [...this.#idle.values()].sort((a, b) => b.length - a.length)[0];
    // Does not wake the keeper: a VM that was evicted for lack of capacity must not be replaced at once.
    return fullest?.pop();
  }

  /** Removes and returns the VMs of images that are no longer current. */
  removeStale(images: readonly ImageInfo[]): PooledVm[] {
    const current = new Set(images.map((image) => image.rootfs));
    const stale: PooledVm[] = [];
    for (const idle of this.#idle.values()) {
      for (const pooled of [...idle]) {
        if (current.has(pooled.vm.image)) continue;
        idle.splice(idle.indexOf(pooled), 1);
        stale.push(pooled);
      }
    }
    return stale;
  }

  /** Empties the pool and refuses more VMs. Returns those it had. */
  close(): PooledVm[] {
    this.#closed = true;
    const all = [...this.#idle.values()].flat();
    this.#idle.clear();
    return all;
  }

  /** The VMs of this template, the oldest first. */
  idle(template: string): readonly Microvm[] {
    return (this.#idle.get(template) ?? []).map(({ vm }) => vm);
  }

  /** Whether the pool has a target for this template. */
  keeps(template: string): boolean {
    return (this.#targets.get(template) ?? 0) > 0;
  }

  /** How many VMs of this template the pool lacks. */
  missing(template: string): number {
    return (this.#targets.get(template) ?? 0) - this.size(template);
  }

  /** Whether several tenants take from it. */
  get isShared(): boolean {
    return this.#turns.isShared();
  }

  size(template: string): number {
    return this.#idle.get(template)?.length ?? 0;
  }

  /** Nominal capacity that the idle VMs hold together. */
  get reserved(): { readonly memoryMib: number; readonly diskMib: number } {
    const sizes = [...this.#idle.values()].flat().map(({ reservation }) => reservation.size);
    return {
      memoryMib: sizes.reduce((sum, size) => sum + size.memoryMib, 0),
      diskMib: sizes.reduce((sum, size) => sum + size.diskMib, 0),
    };
  }

  /** The templates that the pool has targets for. */
  get templates(): string[] {
    return [...this.#targets.keys()];
  }

  #of(template: string): PooledVm[] {
    const idle = this.#idle.get(template) ?? [];
    this.#idle.set(template, idle);
    return idle;
  }

  #forget(pooled: PooledVm): void {
    const idle = this.#idle.get(pooled.vm.template);
    const index = idle?.indexOf(pooled) ?? -1;
    if (idle === undefined || index === -1) return;
    idle.splice(index, 1);
    // Its process is gone; this releases the rest.
    discard(pooled).catch((error) => this.#options.onFault(error, 'clean up after an idle VM'));
    this.#options.onTaken(pooled);
  }
}

/** Destroys a VM, with several attempts, and releases its capacity in any case. @throws CleanupError */
export async function discard({ vm, reservation }: PooledVm): Promise<void> {
  await runEveryStep([
    { name: 'destroy the VM', run: () => retry(() => vm.destroy(), DESTROY_RETRIES) },
    { name: 'release its capacity', run: () => reservation.release() },
  ]);
}
