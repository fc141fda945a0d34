import { SLOT_COUNT } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-policy.ts';
import { blockedSet, replaceTable } from '../nftables.ts';

/**
 * The packet filter on the host for all traffic from and to the slots of an instance. It is the second of two filters,
 * and effective even against a VM that controls its whole network namespace.
 */
export function hostRules(instance: Instance, policy: NetworkPolicy): string {
  return filterTable(instance, policy) + connectionsTable(instance, policy);
}

/** nftables commands that remove everything that {@link hostRules} has made, whether or not it exists. */
export function removeHostRules(instance: Instance): string {
  return [instance.name, connectionsName(instance)]
    .map((name) => `table inet ${name} {}\ndelete table inet ${name}\n`)
    .join('');
}

function filterTable(instance: Instance, policy: NetworkPolicy): string {
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
  # Longer than the DNS forwarder takes for an answer. Each query may come from a port of its own.
  ct timeout guest_dns {
    protocol udp
    l3proto ip
    policy = { unreplied : 10, replied : 10 }
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
    meta l4proto tcp ct timeout set "guest_tcp"
    udp dport ${policy.dnsPort} ct timeout set "guest_dns"
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

/**
 * Counts what each slot has in the host's connection table, which all sandboxes share with the service. The count in the
 * slot's namespace is not enough: a guest can end a connection with a packet that the namespace sees and then drops, for
 * example because its time to live is over, so that the host keeps the connection.
 *
 * The counts survive a replacement, because they cannot be rebuilt for the connections of VMs that are still running. So
 * the set and the chains cannot change under these names, and a new limit applies once a slot has no connections.
 */
function connectionsTable(instance: Instance, policy: NetworkPolicy): string {
  const table = `inet ${connectionsName(instance)}`;
  const limit = `iifname "${instance.name}-*" ct state new add @connections { ip saddr ct count over ${policy.limits.trackedConnections} } drop`;
  // Elements without connections are removed by the kernel. A timeout would forget those that still have some.
  return `table ${table} {
  set connections { type ipv4_addr; size ${SLOT_COUNT}; flags dynamic; }
  chain input { type filter hook input priority filter + 1; policy accept; }
  chain forward { type filter hook forward priority filter + 1; policy accept; }
}
flush table ${table}
add rule ${table} input ${limit}
add rule ${table} forward ${limit}
`;
}

function connectionsName(instance: Instance): string {
  return `${instance.name}_connections`;
}
