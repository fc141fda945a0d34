import { claimInstance } from '../../src/network/instance/claim-instance.ts';
import type { Instance } from '../../src/network/instance/instance.ts';
import type { NetworkSlot } from '../../src/network/slots/network-slot.ts';
import { NetworkSlots, type NetworkSlotsOptions } from '../../src/network/slots/network-slots.ts';
import { serveMethods } from './serve-methods.ts';

let slots: NetworkSlots | undefined;

function opened(): NetworkSlots {
  if (slots === undefined) throw new Error('the network is not open');
  return slots;
}

/** The {@link NetworkSlotsOptions} that a test can set. */
export interface OpenOptions extends Omit<NetworkSlotsOptions, 'instance' | 'dnsUpstreams'> {
  readonly dnsServer?: string;
}

/** Runs the network layer in the namespace that plays the host. */
const methods = {
  async open(dataDir: string, options: OpenOptions): Promise<Instance> {
    const { dnsServer, ...rest } = options;
    const instance = await claimInstance(dataDir);
    const dnsUpstreams = () => (dnsServer === undefined ? [] : [dnsServer]);
    slots = await NetworkSlots.open({ poolSize: 0, ...rest, instance, dnsUpstreams });
    return instance;
  },
  async take(): Promise<NetworkSlot> {
    return opened().take(AbortSignal.timeout(10_000));
  },
  async ready(): Promise<number> {
    return opened().ready;
  },
  async adopt(index: number): Promise<NetworkSlot> {
    return opened().adopt(index);
  },
  async release(slot: NetworkSlot): Promise<void> {
    return opened().release(slot);
  },
  async close(keep: readonly number[]): Promise<void> {
    await slots?.close({ keep });
  },
  async hostChanges(): Promise<readonly string[]> {
    return opened().hostChanges;
  },
};

export type SlotsMethods = typeof methods;

serveMethods(methods);
