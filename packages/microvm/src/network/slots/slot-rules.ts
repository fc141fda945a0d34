import { GUEST_LINK } from '@svc/contract';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-policy.ts';
import { blockedSet, replaceTable } from '../nftables.ts';
import { TAP } from './network-slot.ts';
import { UPLINK } from './slot-link.ts';

const { guest, gateway, guestMac } = GUEST_LINK;
const GUEST_PORTS = Object.values(GUEST_LINK.guestPorts).join(', ');

/** The packet filter in a slot's namespace: the first of the two filters that a guest's packets pass. */
export function slotRules(instance: Instance, slot: number, policy: NetworkPolicy): string {
  return guardTable(policy) + sandboxTable(instance, slot, policy);
}

/**
 * The first check of every frame: accepts only well-formed IPv4 and ARP from this slot's guest. Drops fragments, IP
 * options, VLAN tags, IPv6 and other protocols.
 */
function guardTable(policy: NetworkPolicy): string {
  const gatewayPorts = [53, ...policy.gatewayPorts].join(', ');
  return replaceTable(
    'netdev',
    'guard',
    `  chain from_tap {
    type filter hook ingress device "${TAP}" priority -500; policy drop;
    ether saddr != ${guestMac} counter drop
    arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp operation request arp saddr ether ${guestMac} arp saddr ip ${guest} arp daddr ip ${gateway} accept
    ether type != ip drop
    ip saddr != ${guest} counter drop
    ip hdrlength != 5 drop
    ip frag-off & 0x3fff != 0 drop
    ip daddr ${gateway} jump to_gateway
    ip protocol { tcp, udp } accept
    icmp type echo-request accept
  }
  chain to_gateway {
    udp dport 53 limit rate over 200/second burst 400 packets drop
    tcp dport 53 limit rate over 500/second burst 1000 packets drop
    udp dport 53 accept
    tcp dport { ${gatewayPorts} } accept
    tcp sport { ${GUEST_PORTS} } accept
    drop
  }`,
  );
}

function sandboxTable(instance: Instance, slot: number, policy: NetworkPolicy): string {
  const { hostAddress, slotAddress } = slotAddresses(instance.index, slot);
  const service = instance.serviceAddress;
  const { connections, connectionRate, connectionBurst } = policy.limits;
  const toService = policy.gatewayPorts.map(
    (port) => `    iifname "${TAP}" ip daddr ${gateway} tcp dport ${port} dnat ip to ${service}`,
  );
  return replaceTable(
    'inet',
    'sandbox',
    `  ${blockedSet(policy.blockedRanges)}
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    iifname "${UPLINK}" ip saddr ${hostAddress} ip daddr ${slotAddress} tcp dport { ${GUEST_PORTS} } dnat ip to ${guest}
    iifname "${TAP}" ip daddr ${gateway} udp dport 53 dnat ip to ${service}:${policy.dnsPort}
    iifname "${TAP}" ip daddr ${gateway} tcp dport 53 dnat ip to ${service}:${policy.dnsPort}
${toService.join('\n')}
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "${UPLINK}" snat ip to ${slotAddress}
    oifname "${TAP}" ct status dnat snat ip to ${gateway}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname "${TAP}" oifname "${UPLINK}" jump from_guest
    iifname "${UPLINK}" oifname "${TAP}" jump to_guest
  }
  chain from_guest {
    ct state established accept
    ct state != new drop
    ip daddr ${service} ct status dnat jump to_service
    ip daddr @blocked jump refuse
    limit rate over ${connectionRate}/second burst ${connectionBurst} packets drop
    ct count over ${connections} drop
    accept
  }
  chain to_service {
    limit rate over 100/second burst 200 packets drop
    udp dport ${policy.dnsPort} accept
    ct count over 128 drop
    tcp dport { ${[policy.dnsPort, ...policy.gatewayPorts].join(', ')} } accept
    drop
  }
  chain refuse {
    counter
    limit rate over 20/second burst 40 packets drop
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain to_guest {
    ct state established,related accept
    ct state new ct status dnat accept
  }
  chain input {
    type filter hook input priority filter; policy drop;
  }
  chain output {
    type filter hook output priority filter; policy drop;
    oifname "${TAP}" ip protocol icmp icmp type { destination-unreachable, time-exceeded } accept
    oifname "${TAP}" tcp flags & rst == rst accept
  }`,
  );
}
