/** A tenant that has not created a sandbox for this long does not count as one that uses the service. */
const ACTIVE_MS = 10 * 60_000;

/**
 * Decides who may take the last idle VM of a template: a tenant that has taken none since the pool was last full, so that
 * one that creates sandboxes all the time leaves a VM to the others. A tenant that is alone may take all.
 */
export class PoolTurns {
  readonly #now: () => number;
  /** When each tenant last wanted a VM. Those who want none any more are forgotten. */
  readonly #wantedAt = new Map<string, number>();
  /** Those who have taken a VM since the pool was last full, by template. */
  readonly #takers = new Map<string, Set<string>>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether the tenant, which wants a VM now, may take one of so many. */
  mayTake(template: string, tenantId: string, idle: number): boolean {
    this.#wantedAt.set(tenantId, this.#now());
    if (idle > 1 || this.#takers.get(template)?.has(tenantId) !== true) return idle > 0;
    return !this.isShared();
  }

  /** Notes that the tenant has taken a VM. */
  taken(template: string, tenantId: string): void {
    const takers = this.#takers.get(template) ?? new Set();
    this.#takers.set(template, takers.add(tenantId));
  }

  /** Notes that the pool has as many VMs of the template as it keeps. */
  filled(template: string): void {
    this.#takers.delete(template);
    this.#forget();
  }

  /** Whether several tenants use the service. */
  isShared(): boolean {
    this.#forget();
    return this.#wantedAt.size > 1;
  }

  #forget(): void {
    for (const [tenantId, at] of this.#wantedAt) {
      if (this.#now() - at >= ACTIVE_MS) this.#wantedAt.delete(tenantId);
    }
  }
}
