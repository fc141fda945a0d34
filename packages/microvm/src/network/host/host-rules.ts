import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-policy.ts';
import { blockedSet, replaceTable } from '../nftables.ts';

/**
 * The packet filter on the host for all traffic from and to the slots of an instance. It is the second of two filters,
 * and effective even against a VM that controls its whole network namespace.
 */
export function hostRules(instance: Instance, policy: NetworkPolicy): string {
  const slots = `"${instance.name}-*"`;
  const { serviceAddress, block } = instance;
  const servicePorts = [policy.dnsPort, ...policy.gatewayPorts].join(', ');
  return replaceTable(
    'inet',
    instance.name,
    `  ${blockedSet(policy.blockedRanges)}
  # Open connections expire after the maximum lifetime of a sandbox, closed ones within seconds.
  ct timeout guest_tcp {
    protocol tcp
    l3proto ip
    policy = { established : 7200, fin_wait : 20, time_wait : 10, close : 5 }
  }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname ${slots} meta nfproto != ipv4 drop
    iifname ${slots} fib saddr . iif oif 0 counter drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${slots} jump from_slot
    ip daddr ${block} iifname != "lo" iifname != ${slots} drop
  }
  chain from_slot {
    ct state established,related accept
    ip daddr ${serviceAddress} udp dport ${policy.dnsPort} accept
    ip daddr ${serviceAddress} tcp dport { ${servicePorts} } accept
    counter drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname ${slots} jump outward
    oifname ${slots} jump inward
  }
  chain outward {
    oifname ${slots} drop
    ct state established accept
    ct state != new drop
    ip daddr @blocked counter drop
    ip daddr ${block} drop
    meta l4proto tcp ct timeout set "guest_tcp"
    tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu
  }
  chain inward {
    ct state established,related accept
    drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${block} oifname != { "lo" } oifname != ${slots} masquerade
  }`,
  );
}
