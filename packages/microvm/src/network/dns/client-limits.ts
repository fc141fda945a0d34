import { KeyedSlots, type Sharing, TokenBucket } from '@svc/service-kit/concurrency';

const IN_FLIGHT = 32;
const TOGETHER: Sharing = { own: 4, shared: 512 };

/** Limits on the DNS queries of each sandbox, per second and in progress. Others cannot keep it from its own. */
export class ClientLimits {
  readonly #rate: number;
  readonly #burst: number;
  // Bounded: at most one entry per slot.
  readonly #buckets = new Map<number, TokenBucket>();
  readonly #inFlight = new KeyedSlots<number>(IN_FLIGHT, TOGETHER);

  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  /** Starts a query of this client, and returns the function that ends it. Undefined when it may not start one now. */
  enter(client: number): (() => void) | undefined {
    return this.#bucket(client).take() ? this.#inFlight.take(client) : undefined;
  }

  #bucket(client: number): TokenBucket {
    const known = this.#buckets.get(client);
    if (known !== undefined) return known;
    const bucket = new TokenBucket({ perSecond: this.#rate, burst: this.#burst });
    this.#buckets.set(client, bucket);
    return bucket;
  }
}
