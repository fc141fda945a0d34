import { GUEST_LINK } from '@svc/contract';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import { describeSlot, TAP } from './network-slot.ts';

/** Name of the link to the host, inside the namespace. */
export const UPLINK = 'up0';

/** Batch for `ip` on the host: creates the namespace and its link. */
export function hostLinkBatch(instance: Instance, slot: number): string {
  const { netns } = describeSlot(instance, slot);
  const { hostAddress } = slotAddresses(instance.index, slot);
  return `netns add ${netns}
link add ${netns} type veth peer name ${UPLINK} netns ${netns}
addr add ${hostAddress}/31 dev ${netns}
link set ${netns} up
`;
}

/** Batch for `ip` inside the namespace: configures its end of the link, and creates the tap device for the guest. */
export function namespaceBatch(instance: Instance, slot: number): string {
  const { uid } = describeSlot(instance, slot);
  const { hostAddress, slotAddress } = slotAddresses(instance.index, slot);
  const { gateway, gatewayMac, prefixLength, guest, guestMac } = GUEST_LINK;
  return `addr add ${slotAddress}/31 dev ${UPLINK}
link set ${UPLINK} up
route add default via ${hostAddress}
tuntap add dev ${TAP} mode tap user ${uid} group ${uid} vnet_hdr
link set ${TAP} address ${gatewayMac} up
addr add ${gateway}/${prefixLength} dev ${TAP}
neigh replace ${guest} lladdr ${guestMac} nud permanent dev ${TAP}
`;
}
