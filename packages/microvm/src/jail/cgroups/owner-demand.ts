/** An owner gets at least this part of the weight of one who wants little. */
const LEAST_SHARE = 1 / 4;

interface Seen {
  readonly owner: string;
  readonly wantedMs: number;
}

/**
 * How much of the processor the VMs of owners want, and the weight that each owner gets: the full one for one core or less,
 * and less for more, so that an owner who keeps many VMs busy does not slow down one who runs a command now and then.
 */
export class OwnerDemand {
  #seen: ReadonlyMap<string, Seen> = new Map();
  #at: number | undefined;
  #cores: ReadonlyMap<string, number> = new Map();

  /**
   * Notes the time that each VM has wanted so far.
   * @param now of a monotonic clock, in milliseconds
   */
  note(vms: ReadonlyMap<string, Seen>, now: number): void {
    const elapsedMs = this.#at === undefined ? 0 : now - this.#at;
    const cores = new Map<string, number>();
    for (const [id, { owner, wantedMs }] of vms) {
      // What a new one wanted before, as in the pool, does not count.
      const before = this.#seen.get(id)?.wantedMs ?? wantedMs;
      const wanted = elapsedMs === 0 ? 0 : Math.max(0, wantedMs - before) / elapsedMs;
      cores.set(owner, (cores.get(owner) ?? 0) + wanted);
    }
    // Half of it is what was before, since a VM may want nothing for a moment.
    for (const [owner, wanted] of cores) {
      cores.set(owner, (wanted + (this.#cores.get(owner) ?? 0)) / 2);
    }
    this.#cores = cores;
    this.#seen = vms;
    this.#at = now;
  }

  /** The part of the full weight for each owner with VMs. */
  shares(): ReadonlyMap<string, number> {
    const share = (cores: number) => Math.max(LEAST_SHARE, 1 / Math.max(1, cores));
    return new Map([...this.#cores].map(([owner, cores]) => [owner, share(cores)]));
  }
}
