import { runProgram } from '@svc/service-kit/process';
import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-policy.ts';
import { describeSlot, type NetworkSlot } from './network-slot.ts';
import { removeSlots } from './remove-slots.ts';
import { hostLinkBatch, namespaceBatch } from './slot-link.ts';
import { slotRules } from './slot-rules.ts';

// Disables IPv6 first, so that no interface ever gets an IPv6 address. Forwarding is enabled last, after the rules.
const NAMESPACE_SCRIPT = `
cd /proc/sys/net
if [ -d ipv6 ]; then
  echo 1 > ipv6/conf/all/disable_ipv6
  echo 1 > ipv6/conf/default/disable_ipv6
fi
echo 1 > ipv4/conf/all/rp_filter
echo 0 > ipv4/conf/all/accept_redirects
`;

/**
 * Builds the namespace, link, tap device and packet filter of a slot.
 *
 * @throws ProgramError after removing all parts of the slot
 */
export async function buildSlot(
  instance: Instance,
  index: number,
  policy: NetworkPolicy,
): Promise<NetworkSlot> {
  const slot = describeSlot(instance, index);
  try {
    // One program for everything, because each start of one holds up this process.
    const script = `ip -batch - <<'EOF'
${hostLinkBatch(instance, index)}EOF
ipv6=/proc/sys/net/ipv6/conf/${slot.netns}/disable_ipv6
if [ -e $ipv6 ]; then echo 1 > $ipv6; fi
exec nsenter --net=/run/netns/${slot.netns} sh -eu <<'INSIDE'
${NAMESPACE_SCRIPT}
ip -batch - <<'EOF'
${namespaceBatch(instance, index)}EOF
nft -f - <<'EOF'
${slotRules(instance, index, policy)}EOF
echo 1 > ipv4/ip_forward
INSIDE
`;
    await runProgram('sh', ['-eu'], script);
    return slot;
  } catch (error) {
    await removeSlots([slot]);
    throw error;
  }
}

/** Replaces the packet filter of a slot with the current one. Existing connections continue. */
export async function refreshSlotRules(
  instance: Instance,
  index: number,
  policy: NetworkPolicy,
): Promise<void> {
  const { netns } = describeSlot(instance, index);
  const rules = slotRules(instance, index, policy);
  await runProgram('nsenter', [`--net=/run/netns/${netns}`, 'nft', '-f', '-'], rules);
}
