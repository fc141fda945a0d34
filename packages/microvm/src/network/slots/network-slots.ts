import { randomInt } from 'node:crypto';
import { runEveryStep } from '@svc/service-kit/concurrency';
import { SLOT_COUNT, slotOfAddress } from '../addresses.ts';
import { DnsForwarder } from '../dns/dns-forwarder.ts';
import { setUpHost, tearDownHost } from '../host/host-setup.ts';
import { releaseInstance } from '../instance/claim-instance.ts';
import type { Instance } from '../instance/instance.ts';
import { NetworkError } from '../network-error.ts';
import { DEFAULT_SLOT_LIMITS, type NetworkPolicy, type SlotLimits } from '../network-policy.ts';
import { buildSlot, refreshSlotRules } from './build-slot.ts';
import { existingSlots } from './existing-slots.ts';
import { describeSlot, type NetworkSlot } from './network-slot.ts';
import { removeSlots } from './remove-slots.ts';
import { SlotIndexes } from './slot-indexes.ts';
import { SlotPool } from './slot-pool.ts';

const DNS_PORT = 1053;
const DEFAULT_POOL_SIZE = 4;

/** Options for opening the network of an instance. */
export interface NetworkSlotsOptions {
  readonly instance: Instance;
  /** Slots of VMs that are still running. All other existing slots are removed. */
  readonly keep?: readonly number[];
  /** Number of slots kept ready. Default: 4. */
  readonly poolSize?: number;
  readonly limits?: Partial<SlotLimits>;
  /** TCP ports of the guests' gateway that forward to the same port of the service address. */
  readonly gatewayPorts?: readonly number[];
  /** Ranges (CIDR) that no guest may reach, in addition to the special ranges. */
  readonly blockedRanges?: readonly string[];
  /** DNS servers that answer the guests' queries, as `address` or `address:port`. Default: those of this machine. */
  readonly dnsUpstreams?: () => readonly string[];
  /** Called for every failure to refill the pool, which no caller awaits. */
  readonly onBackgroundError?: (error: unknown) => void;
}

/** The network slots of one instance, and the DNS forwarder that serves them. */
export class NetworkSlots {
  /** Machine-wide changes made by `open` that `close` does not undo, one sentence each. */
  readonly hostChanges: readonly string[];
  readonly #instance: Instance;
  readonly #policy: NetworkPolicy;
  readonly #dns: DnsForwarder;
  readonly #indexes = new SlotIndexes(randomInt(SLOT_COUNT));
  readonly #pool: SlotPool;
  /** Slots reserved for running VMs until they are adopted. */
  readonly #adoptable: Set<number>;
  #closed = false;

  private constructor(
    options: NetworkSlotsOptions,
    policy: NetworkPolicy,
    dns: DnsForwarder,
    adoptable: readonly number[],
    hostChanges: readonly string[],
  ) {
    this.#instance = options.instance;
    this.#policy = policy;
    this.#dns = dns;
    this.#adoptable = new Set(adoptable);
    this.hostChanges = hostChanges;
    for (const index of adoptable) this.#indexes.reserve(index);
    const maker = {
      build: () => this.#build(),
      remove: (slots: readonly NetworkSlot[]) => this.#remove(slots),
    };
    this.#pool = new SlotPool(maker, options.poolSize ?? DEFAULT_POOL_SIZE, (error) =>
      options.onBackgroundError?.(error),
    );
    this.#pool.fill();
  }

  /**
   * Sets up the host's side, removes slots left by a crash, and starts to fill the pool of ready slots.
   * Needs root. Only one may be open per instance.
   *
   * @throws NetworkError `network_setup_failed` or `dns_listen_failed`
   * @throws ProgramError when `ip` or `nft` fails
   */
  static async open(options: NetworkSlotsOptions): Promise<NetworkSlots> {
    const { instance } = options;
    const policy: NetworkPolicy = {
      limits: { ...DEFAULT_SLOT_LIMITS, ...options.limits },
      dnsPort: DNS_PORT,
      gatewayPorts: options.gatewayPorts ?? [],
      blockedRanges: options.blockedRanges ?? [],
    };
    const existing = await existingSlots(instance);
    const keep = new Set(options.keep);
    const adoptable = existing.filter((index) => keep.has(index));
    try {
      const hostChanges = await setUpHost(instance, policy);
      const leftovers = existing.filter((index) => !keep.has(index));
      await removeSlots(leftovers.map((index) => describeSlot(instance, index)));
      const dns = await openDns(options, policy);
      return new NetworkSlots(options, policy, dns, adoptable, hostChanges);
    } catch (error) {
      if (adoptable.length === 0) await tearDownHost(instance);
      throw error;
    }
  }

  /** Number of slots that `take` can return immediately. */
  get ready(): number {
    return this.#pool.size;
  }

  /**
   * Reserves a slot for the caller until it is released. Usually immediate, from the pool.
   *
   * @throws NetworkError `slots_exhausted`, `network_setup_failed` or `network_closed`
   * @throws ProgramError when `ip` or `nft` fails
   */
  async take(signal: AbortSignal): Promise<NetworkSlot> {
    this.#assertOpen();
    return this.#pool.take(signal);
  }

  /**
   * Takes over the slot of a VM that outlived an earlier process, and gives it the current packet filter.
   *
   * @throws NetworkError `slot_not_found` when the slot was not in the list to keep or does not exist
   */
  async adopt(index: number): Promise<NetworkSlot> {
    this.#assertOpen();
    if (!this.#adoptable.delete(index)) {
      throw new NetworkError('slot_not_found', `network slot ${index} does not exist any more`);
    }
    await refreshSlotRules(this.#instance, index, this.#policy);
    return describeSlot(this.#instance, index);
  }

  /** Removes a slot and everything in it. Its VM must have ended. Idempotent. */
  async release(slot: NetworkSlot): Promise<void> {
    if (!this.#indexes.has(slot.index)) return;
    await this.#remove([slot]);
  }

  /**
   * Stops the DNS forwarder and removes every slot except those in `keep`. With none to keep, it also removes the host's
   * side and releases the instance.
   */
  async close(options: { keep?: readonly number[] } = {}): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const keep = new Set(options.keep);
    const existing = await existingSlots(this.#instance);
    const isKept = existing.some((index) => keep.has(index));
    await runEveryStep([
      { name: 'close the pool', run: () => this.#pool.close() },
      { name: 'stop the DNS forwarder', run: () => this.#dns.close() },
      { name: 'remove the network slots', run: () => this.#removeAllBut(keep) },
      ...(isKept
        ? []
        : [{ name: "remove the host's side", run: () => tearDownHost(this.#instance) }]),
    ]);
    // Not after a failure: with the index, the next start finds what is left.
    if (!isKept) await releaseInstance(this.#instance);
  }

  async #build(): Promise<NetworkSlot> {
    const index = this.#indexes.allocate();
    try {
      return await buildSlot(this.#instance, index, this.#policy);
    } catch (error) {
      this.#indexes.free(index);
      throw error;
    }
  }

  async #removeAllBut(kept: ReadonlySet<number>): Promise<void> {
    const existing = await existingSlots(this.#instance);
    const removed = existing.filter((index) => !kept.has(index));
    await this.#remove(removed.map((index) => describeSlot(this.#instance, index)));
  }

  async #remove(slots: readonly NetworkSlot[]): Promise<void> {
    await removeSlots(slots);
    for (const slot of slots) this.#indexes.free(slot.index);
  }

  #assertOpen(): void {
    if (this.#closed) throw new NetworkError('network_closed', 'the network is closed');
  }
}

function openDns(options: NetworkSlotsOptions, policy: NetworkPolicy): Promise<DnsForwarder> {
  const { instance } = options;
  return DnsForwarder.open({
    address: instance.serviceAddress,
    port: policy.dnsPort,
    clientOf: (address) => slotOfAddress(instance.index, address),
    rate: policy.limits.dnsRate,
    burst: policy.limits.dnsBurst,
    upstreams: options.dnsUpstreams,
  });
}
