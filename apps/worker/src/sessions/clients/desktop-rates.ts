import { KeyedTokenBuckets } from '@svc/service-kit/concurrency';

const RATE = { perSecond: 100, burst: 400 };
/** A picture, and the beginning of a live view, costs a guest and its clients as much as this many movements of the mouse. */
const PICTURE_COST = 10;

/**
 * Bounds what the clients of each tenant ask of its desktops on this worker: 100 operations or 10 pictures a second, and
 * four times as many at once.
 */
export class DesktopRates {
  readonly #tenants: KeyedTokenBuckets;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now?: () => number) {
    this.#tenants = new KeyedTokenBuckets(RATE, now);
  }

  /** Whether the tenant may make this call now. */
  take(tenantId: string, tool: string): boolean {
    const isPicture = tool === 'screenshot' || tool === 'watch';
    return this.#tenants.take(tenantId, isPicture ? PICTURE_COST : 1);
  }
}
