/** A tenant that has not created a sandbox for this long does not count as one that uses the service. */
const ACTIVE_MS = 10 * 60_000;
/** What a tenant has created counts half after this time: that of a few creates, in which the pool is filled again. */
const HALF_LIFE_MS = 10_000;
/** Less than this is none: half a minute after a single create. */
const NONE = 1 / 8;

/** Creates as of a time, in milliseconds of a monotonic clock. */
interface Creates {
  readonly count: number;
  readonly at: number;
}

/**
 * Decides who may take the last idle VM of a template: a tenant that has lately created no more from it than the average of those
 * that use it. So one that creates sandboxes all the time leaves a VM to the others. A tenant that is alone may take all.
 */
export class PoolTurns {
  readonly #now: () => number;
  /** Of each tenant, by template. */
  readonly #creates = new Map<string, Map<string, Creates>>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts a create of the tenant. Returns whether it may take one of so many idle VMs. */
  mayTake(template: string, tenantId: string, idle: number): boolean {
    const now = this.#now();
    const creates = this.#creates.get(template) ?? new Map<string, Creates>();
    forget(creates, now);
    const lately = new Map([...creates].map(([id, each]) => [id, countNow(each, now)]));
    const own = lately.get(tenantId) ?? 0;
    const mayTake = idle > 1 || (idle === 1 && own <= average([...lately.values()]));
    this.#creates.set(template, creates.set(tenantId, { count: own + 1, at: now }));
    return mayTake;
  }

  /** Whether several tenants use the service. */
  isShared(): boolean {
    const tenants = new Set<string>();
    for (const creates of this.#creates.values()) {
      forget(creates, this.#now());
      for (const tenantId of creates.keys()) tenants.add(tenantId);
    }
    return tenants.size > 1;
  }
}

function forget(creates: Map<string, Creates>, now: number): void {
  for (const [tenantId, { at }] of creates) {
    if (now - at >= ACTIVE_MS) creates.delete(tenantId);
  }
}

function countNow({ count, at }: Creates, now: number): number {
  const left = count * 0.5 ** ((now - at) / HALF_LIFE_MS);
  return left < NONE ? 0 : left;
}

/** Those who have created none lately count as one tenant, since the next create may be of any of them. */
function average(counts: readonly number[]): number {
  const some = counts.filter((count) => count > 0);
  const tenants = some.length + (some.length < counts.length ? 1 : 0);
  return some.reduce((sum, count) => sum + count, 0) / Math.max(1, tenants);
}
