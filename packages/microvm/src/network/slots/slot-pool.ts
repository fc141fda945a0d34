import { Slots, sleep } from '@svc/service-kit/concurrency';
import { NetworkError } from '../network-error.ts';
import type { NetworkSlot } from './network-slot.ts';

const PARALLEL_BUILDS = 2;
const REFILL_PAUSE_MS = 50;
const FIRST_RETRY_MS = 250;
const RETRIES = 6;

/** Builds the slots of a pool and removes those that are no longer needed. */
export interface SlotBuilder {
  build(): Promise<NetworkSlot>;
  remove(slots: readonly NetworkSlot[]): Promise<void>;
}

/** A small pool of ready slots, refilled in the background so that taking one is immediate. */
export class SlotPool {
  readonly #builder: SlotBuilder;
  readonly #target: number;
  readonly #onFailure: (error: unknown) => void;
  readonly #ready: NetworkSlot[] = [];
  readonly #limit = new Slots(PARALLEL_BUILDS);
  readonly #building = new Set<Promise<NetworkSlot>>();
  readonly #closing = new AbortController();
  #filling: Promise<void> | undefined;

  constructor(builder: SlotBuilder, target: number, onFailure: (error: unknown) => void) {
    this.#builder = builder;
    this.#target = target;
    this.#onFailure = onFailure;
  }

  /** Number of ready slots. */
  get size(): number {
    return this.#ready.length;
  }

  /** Takes a ready slot, or builds one when there is none. */
  async take(signal: AbortSignal): Promise<NetworkSlot> {
    signal.throwIfAborted();
    const ready = this.#ready.shift();
    this.fill();
    if (ready !== undefined) return ready;
    const built = await this.#build();
    if (this.#closing.signal.aborted) {
      await this.#builder.remove([built]);
      throw closed();
    }
    if (!signal.aborted) return built;
    this.#ready.push(built);
    throw signal.reason;
  }

  /** Starts to refill the pool in the background, unless that is already running. */
  fill(): void {
    if (this.#closing.signal.aborted || this.#filling !== undefined) return;
    this.#filling = this.#fillUp().finally(() => {
      this.#filling = undefined;
    });
  }

  /** Stops refilling, waits for slots being built, and removes all slots that were not taken. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#filling;
    await Promise.allSettled(this.#building);
    await this.#builder.remove(this.#ready.splice(0));
  }

  async #build(): Promise<NetworkSlot> {
    const building = this.#limit.run(async () => {
      if (this.#closing.signal.aborted) throw closed();
      return this.#builder.build();
    });
    this.#building.add(building);
    return building.finally(() => this.#building.delete(building));
  }

  async #fillUp(): Promise<void> {
    let failures = 0;
    // A burst of takes, and the VMs they are for, get the processors first.
    await this.#pause(REFILL_PAUSE_MS);
    while (this.#ready.length < this.#target && !this.#closing.signal.aborted) {
      try {
        this.#ready.push(await this.#build());
        failures = 0;
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#onFailure(error);
        failures += 1;
        // The next take tries again and reports the failure to its caller.
        if (failures > RETRIES) return;
        await this.#pause(FIRST_RETRY_MS * 2 ** failures);
      }
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return sleep(milliseconds, this.#closing.signal, { ref: false });
  }
}

function closed(): NetworkError {
  return new NetworkError('network_closed', 'the network is closed');
}
