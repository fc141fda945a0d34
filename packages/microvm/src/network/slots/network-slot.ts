import { slotAddresses, slotUid } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';

/** Name of the tap device in a slot's namespace, which links it to the guest. */
export const TAP = 'tap0';

/** The network of one sandbox: a namespace with a tap device for its VM, and a link to the host. */
export interface NetworkSlot {
  readonly index: number;
  /** Name of the namespace below /run/netns, and of the host's end of its link. */
  readonly netns: string;
  /** User and group of the VM process. Besides root, only this user can open the tap device. */
  readonly uid: number;
  /** Name of the tap device in the namespace. */
  readonly tap: string;
  /** Address that reaches the guest's SSH server and guest channel from this machine. */
  readonly address: string;
}

export function describeSlot(instance: Instance, index: number): NetworkSlot {
  return {
    index,
    netns: `${instance.name}-${index}`,
    uid: slotUid(instance.index, index),
    tap: TAP,
    address: slotAddresses(instance.index, index).slotAddress,
  };
}
