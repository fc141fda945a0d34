import { ServiceError } from '@svc/contract';
import type { RuntimeBounds } from '../options.ts';

type SlotBounds = Pick<
  RuntimeBounds,
  'connections' | 'connectionsPerAddress' | 'handshakesPerAddress'
>;

interface Counts {
  handshakes: number;
  connections: number;
}

/** The slot of one connection. Both methods are idempotent. */
export interface Slot {
  /** The handshake is complete and the connection open. */
  settle(): void;
  /** The connection is closed. */
  release(): void;
}

/** Counts connections and handshakes, in total and per address. */
export class ConnectionSlots {
  readonly #bounds: SlotBounds;
  readonly #byAddress = new Map<string, Counts>();
  #total = 0;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  /** Takes a slot, before any work for the connection. @throws ServiceError `rate_limited` when a bound is reached */
  take(address: string): Slot {
    const counts = this.#byAddress.get(address) ?? { handshakes: 0, connections: 0 };
    const { connections, connectionsPerAddress, handshakesPerAddress } = this.#bounds;
    if (
      this.#total >= connections ||
      counts.connections >= connectionsPerAddress ||
      counts.handshakes >= handshakesPerAddress
    ) {
      throw new ServiceError('rate_limited');
    }
    this.#byAddress.set(address, counts);
    this.#total += 1;
    counts.connections += 1;
    counts.handshakes += 1;
    let inHandshake = true;
    const settle = () => {
      if (inHandshake) counts.handshakes -= 1;
      inHandshake = false;
    };
    let isTaken = true;
    const release = () => {
      settle();
      if (!isTaken) return;
      isTaken = false;
      this.#total -= 1;
      counts.connections -= 1;
      if (counts.connections === 0) this.#byAddress.delete(address);
    };
    return { settle, release };
  }
}
