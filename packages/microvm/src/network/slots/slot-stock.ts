import { Slots, sleep } from '@svc/service-kit/concurrency';
import { NetworkError } from '../network-error.ts';
import type { NetworkSlot } from './network-slot.ts';

const PARALLEL_BUILDS = 2;
const REFILL_PAUSE_MS = 50;
const FIRST_RETRY_MS = 250;
const RETRIES = 6;

/** How a stock makes a slot, and takes one away that nobody needs any more. */
export interface SlotMaker {
  build(): Promise<NetworkSlot>;
  remove(slots: readonly NetworkSlot[]): Promise<void>;
}

/** A small number of ready slots, refilled in the background so that taking one is immediate. */
export class SlotStock {
  readonly #maker: SlotMaker;
  readonly #target: number;
  readonly #onFailure: (error: unknown) => void;
  readonly #ready: NetworkSlot[] = [];
  readonly #limit = new Slots(PARALLEL_BUILDS);
  readonly #building = new Set<Promise<NetworkSlot>>();
  readonly #closing = new AbortController();
  #filling: Promise<void> | undefined;

  constructor(maker: SlotMaker, target: number, onFailure: (error: unknown) => void) {
    this.#maker = maker;
    this.#target = target;
    this.#onFailure = onFailure;
  }

  /** How many slots are ready now. */
  get size(): number {
    return this.#ready.length;
  }

  /** A ready slot, or a newly built one when there is none. */
  async take(signal: AbortSignal): Promise<NetworkSlot> {
    signal.throwIfAborted();
    const ready = this.#ready.shift();
    this.fill();
    if (ready !== undefined) return ready;
    const built = await this.#build();
    if (this.#closing.signal.aborted) {
      await this.#maker.remove([built]);
      throw closed();
    }
    if (!signal.aborted) return built;
    this.#ready.push(built);
    throw signal.reason;
  }

  /** Starts refilling in the background, if it is not under way. */
  fill(): void {
    if (this.#closing.signal.aborted || this.#filling !== undefined) return;
    this.#filling = this.#fillUp().finally(() => {
      this.#filling = undefined;
    });
  }

  /** Stops refilling, waits for what is being built, and takes away what nobody took. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#filling;
    await Promise.allSettled(this.#building);
    await this.#maker.remove(this.#ready.splice(0));
  }

  async #build(): Promise<NetworkSlot> {
    const building = this.#limit.run(async () => {
      if (this.#closing.signal.aborted) throw closed();
      return this.#maker.build();
    });
    this.#building.add(building);
    return building.finally(() => this.#building.delete(building));
  }

  async #fillUp(): Promise<void> {
    let failures = 0;
    // A burst of takes, and the VMs they are for, have the processors first.
    await this.#pause(REFILL_PAUSE_MS);
    while (this.#ready.length < this.#target && !this.#closing.signal.aborted) {
      try {
        this.#ready.push(await this.#build());
        failures = 0;
      } catch (error) {
        if (this.#closing.signal.aborted) return;
        this.#onFailure(error);
        failures += 1;
        // The next take tries again, and tells its caller what is wrong.
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
