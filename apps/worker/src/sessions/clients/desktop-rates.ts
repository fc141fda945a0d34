import { TokenBucket } from '@svc/service-kit/concurrency';

const RATE = { perSecond: 100, burst: 400 };
/** A picture costs a guest and its clients as much as this many movements of the mouse. */
const PICTURE_COST = 10;
/** A bucket is full again after this long, and need not be remembered. */
const FULL_MS = (RATE.burst / RATE.perSecond) * 1000;

interface Entry {
  readonly bucket: TokenBucket;
  usedAt: number;
}

/**
 * Bounds what the clients of each tenant ask of its desktops on this worker: 100 operations or 10 pictures a second, and
 * four times as many at once.
 */
export class DesktopRates {
  readonly #now: () => number;
  readonly #tenants = new Map<string, Entry>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether the tenant may make this call now. */
  take(tenantId: string, tool: string): boolean {
    const entry = this.#tenants.get(tenantId) ?? this.#open(tenantId);
    entry.usedAt = this.#now();
    return entry.bucket.take(tool === 'screenshot' ? PICTURE_COST : 1);
  }

  #open(tenantId: string): Entry {
    const now = this.#now();
    for (const [id, { usedAt }] of this.#tenants) {
      if (now - usedAt >= FULL_MS) this.#tenants.delete(id);
    }
    const entry = { bucket: new TokenBucket(RATE, this.#now), usedAt: now };
    this.#tenants.set(tenantId, entry);
    return entry;
  }
}
