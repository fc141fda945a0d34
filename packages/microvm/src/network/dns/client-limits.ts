import { TokenBucket } from '@svc/service-kit/concurrency';

const PER_CLIENT_IN_FLIGHT = 32;
const TOTAL_IN_FLIGHT = 512;

/** What may be asked at once and per second, by each sandbox and by all of them together. */
export class ClientLimits {
  readonly #rate: number;
  readonly #burst: number;
  // One entry a slot at most, so bounded by the number of slots.
  readonly #buckets = new Map<number, TokenBucket>();
  readonly #inFlight = new Map<number, number>();
  #total = 0;

  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  /** Whether this client may start another query now. Each `true` needs one {@link leave}. */
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
