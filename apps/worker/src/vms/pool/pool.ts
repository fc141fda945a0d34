import type { ImageInfo, Microvm } from '@svc/microvm';
import type { Reservation } from '../capacity/capacity.ts';

/** A VM that waits for an owner, with the room it holds. Whoever takes it owns both. */
export interface PooledVm {
  readonly vm: Microvm;
  readonly reservation: Reservation;
}

export interface PoolOptions {
  /** Called whenever a template may have fallen below its target. */
  readonly onTaken: () => void;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, what: string) => void;
}

/** The idle VMs per template. Only keeps them: who fills and empties it decides when. */
export class Pool {
  readonly #targets: ReadonlyMap<string, number>;
  readonly #idle = new Map<string, PooledVm[]>();
  readonly #options: PoolOptions;
  #closed = false;

  constructor(targets: ReadonlyMap<string, number>, options: PoolOptions) {
    this.#targets = targets;
    this.#options = options;
  }

  /** Hands over the longest-waiting VM of this image, if there is one. */
  take(image: ImageInfo): PooledVm | undefined {
    const idle = this.#idle.get(image.template) ?? [];
    const index = idle.findIndex(({ vm }) => vm.image === image.rootfs);
    if (index === -1) return undefined;
    const [taken] = idle.splice(index, 1);
    this.#options.onTaken();
    return taken;
  }

  /** Takes in an idle VM; false when the pool is closed or has enough of them, and the VM stays the caller's. */
  put(pooled: PooledVm): boolean {
    const { template } = pooled.vm;
    if (this.#closed || this.missing(template) <= 0) return false;
    this.#of(template).push(pooled);
    void pooled.vm.exited.then(() => this.#forget(pooled));
    return true;
  }

  /** Removes the VM that is worth least: the newest of the template that has most. */
  giveBack(): PooledVm | undefined {
    const fullest = [...this.#idle.values()].sort((a, b) => b.length - a.length)[0];
    // The keeper is not woken: what is given back for want of room is not to be refilled at once.
    return fullest?.pop();
  }

  /** Removes VMs of images that are no longer current. */
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

  /** Empties the pool for good. */
  close(): PooledVm[] {
    this.#closed = true;
    const all = [...this.#idle.values()].flat();
    this.#idle.clear();
    return all;
  }

  /** Whether VMs of this template are kept at all. */
  keeps(template: string): boolean {
    return (this.#targets.get(template) ?? 0) > 0;
  }

  /** How many VMs of this template are short of the target. */
  missing(template: string): number {
    return (this.#targets.get(template) ?? 0) - this.size(template);
  }

  size(template: string): number {
    return this.#idle.get(template)?.length ?? 0;
  }

  /** Nominal room that the idle VMs hold together. */
  get reserved(): { readonly memoryMib: number; readonly diskMib: number } {
    const sizes = [...this.#idle.values()].flat().map(({ reservation }) => reservation.size);
    return {
      memoryMib: sizes.reduce((sum, size) => sum + size.memoryMib, 0),
      diskMib: sizes.reduce((sum, size) => sum + size.diskMib, 0),
    };
  }

  /** Templates that are to be kept ready. */
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
    // Its process is gone; what else it held goes with this.
    discard(pooled).catch((error) => this.#options.onFault(error, 'clean up after an idle VM'));
    this.#options.onTaken();
  }
}

/** Ends an idle VM and frees its room. */
export async function discard({ vm, reservation }: PooledVm): Promise<void> {
  await vm.destroy();
  reservation.release();
}
