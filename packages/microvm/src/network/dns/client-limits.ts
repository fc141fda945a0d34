import { TokenBucket } from '@svc/service-kit/concurrency';

const PER_CLIENT_IN_FLIGHT = 32;
const TOTAL_IN_FLIGHT = 512;

/** Limits on the DNS queries of each sandbox, per second and in progress, and of all sandboxes together. */
export class ClientLimits {
  readonly #rate: number;
  readonly #burst: number;
  // Bounded: at most one entry per slot.
  readonly #buckets = new Map<number, TokenBucket>();
  readonly #inFlight = new Map<number, number>();
  #total = 0;

  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  /** Whether this client may start another query now. After `true`, call {@link leave} when the query has ended. */
  enter(client: number): boolean {
    const running = this.#inFlight.get(client) ?? 0;
    if (!this.#bucket(client).take()) return false;
    if (running >= PER_CLIENT_IN_FLIGHT || this.#total >= TOTAL_IN_FLIGHT) return false;
    this.#inFlight.set(client, running + 1);
    this.#total += 1;
    return true;
  }

  leave(client: number): void {
    const running = this.#inFlight.get(client) ?? 0;
    this.#total -= 1;
    if (running > 1) this.#inFlight.set(client, running - 1);
    else this.#inFlight.delete(client);
  }

  #bucket(client: number): TokenBucket {
    const known = this.#buckets.get(client);
    if (known !== undefined) return known;
    const bucket = new TokenBucket({ perSecond: this.#rate, burst: this.#burst });
    this.#buckets.set(client, bucket);
    return bucket;
  }
}
