import { slotAddresses, slotUid } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';

/** The namespace's end of its link to the guest. */
export const TAP = 'tap0';

/** One sandbox's network: a namespace with a tap for its VM, linked to the host. */
export interface NetworkSlot {
  readonly index: number;
  /** Name of the namespace under /run/netns, and of the host's end of its link. */
  readonly netns: string;
  /** User and group that the VM runs as; the only one, beside root, that can open the tap. */
  readonly uid: number;
  /** The tap's name inside the namespace. */
  readonly tap: string;
  /** Address that reaches the guest's SSH and guest channel from this machine. */
  readonly host: string;
}

export function describeSlot(instance: Instance, index: number): NetworkSlot {
  return {
    index,
    netns: `${instance.name}-${index}`,
    uid: slotUid(instance.index, index),
    tap: TAP,
    host: slotAddresses(instance.index, index).outer,
  };
}
