import { randomInt } from 'node:crypto';
import { SLOT_COUNT, slotOfAddress } from '../addresses.ts';
import { DnsForwarder } from '../dns/dns-forwarder.ts';
import { forgetConnections } from '../host/forget-connections.ts';
import { setUpHost, tearDownHost } from '../host/host-setup.ts';
import { releaseInstance } from '../instance/claim-instance.ts';
import type { Instance } from '../instance/instance.ts';
import { NetworkError } from '../network-error.ts';
import { DEFAULT_SLOT_LIMITS, type NetworkPolicy, type SlotLimits } from '../network-options.ts';
import { buildSlot, refreshSlotRules } from './build-slot.ts';
import { existingSlots } from './existing-slots.ts';
import { describeSlot, type NetworkSlot } from './network-slot.ts';
import { removeSlots } from './remove-slots.ts';
import { SlotIndexes } from './slot-indexes.ts';
import { SlotStock } from './slot-stock.ts';

const DNS_PORT = 1053;
const DEFAULT_STOCK = 4;

/** How an instance's network is opened. */
export interface NetworkSlotsOptions {
  readonly instance: Instance;
  /** Slots whose VMs live; any other that exists is a leftover and is removed. */
  readonly keep?: readonly number[];
  /** How many slots are held ready; 4 by default. */
  readonly stock?: number;
  readonly limits?: Partial<SlotLimits>;
  /** TCP ports of the guests' gateway that lead to the same port of the service address. */
  readonly gatewayPorts?: readonly number[];
  /** Ranges (CIDR) that no guest may reach, beside every special one. */
  readonly blockedRanges?: readonly string[];
  /** DNS servers to ask for guests, as `address` or `address:port`; the machine's own by default. */
  readonly dnsUpstreams?: () => readonly string[];
  /** Told of failures that no caller waits for, of refilling the stock. */
  readonly onBackgroundError?: (error: unknown) => void;
}

/** The network slots of one instance, and its DNS forwarder for them. */
export class NetworkSlots {
  /** What opening changed for the whole machine and closing leaves as it is; one sentence each. */
  readonly hostChanges: readonly string[];
  readonly #instance: Instance;
  readonly #policy: NetworkPolicy;
  readonly #dns: DnsForwarder;
  readonly #indexes = new SlotIndexes(randomInt(SLOT_COUNT));
  readonly #stock: SlotStock;
  /** Reserved for VMs that live, until they are adopted. */
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
    this.#stock = new SlotStock(maker, options.stock ?? DEFAULT_STOCK, (error) =>
      options.onBackgroundError?.(error),
    );
    this.#stock.fill();
  }

  /**
   * Makes the host's side, removes the leftovers of a crash, and starts to build ready slots.
   * Needs root. One at a time per instance.
   *
   * @throws NetworkError `network_setup_failed` or `dns_listen_failed`
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
      await removeSlots(leftovers.map((index) => describeSlot(instance, index).netns));
      const dns = await openDns(options, policy);
      return new NetworkSlots(options, policy, dns, adoptable, hostChanges);
    } catch (error) {
      if (adoptable.length === 0) await tearDownHost(instance);
      throw error;
    }
  }

  /** How many slots are ready to be taken at once. */
  get ready(): number {
    return this.#stock.size;
  }

  /**
   * A slot of one's own, usually at once from the stock, until it is released.
   *
   * @throws NetworkError `slots_exhausted`, `network_setup_failed` or `network_closed`
   */
  async take(signal: AbortSignal): Promise<NetworkSlot> {
    this.#assertOpen();
    return this.#stock.take(signal);
  }

  /**
   * The slot of a VM that outlived an earlier process, with the current packet filter.
   *
   * @throws NetworkError `slot_not_found` when it was not in the list to keep, or is gone
   */
  async adopt(index: number): Promise<NetworkSlot> {
    this.#assertOpen();
    if (!this.#adoptable.delete(index)) {
      throw new NetworkError('slot_not_found', `network slot ${index} does not exist any more`);
    }
    await refreshSlotRules(this.#instance, index, this.#policy);
    return describeSlot(this.#instance, index);
  }

  /** Takes a slot away with everything in it. Its VM must have ended. Idempotent. */
  async release(slot: NetworkSlot): Promise<void> {
    if (!this.#indexes.has(slot.index)) return;
    await this.#remove([slot]);
  }

  /**
   * Ends the DNS forwarder and takes away every slot but those in `keep`. With none to keep, the
   * host's side and the instance's claim go too.
   */
  async close(options: { keep?: readonly number[] } = {}): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#stock.close();
    await this.#dns.close();
    const keep = new Set(options.keep);
    const existing = await existingSlots(this.#instance);
    const slots = existing.map((index) => describeSlot(this.#instance, index));
    await this.#remove(slots.filter((slot) => !keep.has(slot.index)));
    if (slots.some((slot) => keep.has(slot.index))) return;
    await tearDownHost(this.#instance);
    await releaseInstance(this.#instance);
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

  async #remove(slots: readonly NetworkSlot[]): Promise<void> {
    await removeSlots(slots.map((slot) => slot.netns));
    await Promise.all(slots.map((slot) => forgetConnections(slot.host)));
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
