import ipaddr from 'ipaddr.js';

/**
 * Whether this is an address of the public internet: no private, shared, loopback, link-local,
 * multicast, documentation or translation range, in IPv4, IPv6 or one inside the other.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || isGlobalUnicast(parsed as ipaddr.IPv6);
}

/** Only 2000::/3 is handed out; inside it, what wraps an IPv4 address has a range name of its own. */
function isGlobalUnicast(address: ipaddr.IPv6): boolean {
  return address.match(ipaddr.IPv6.parse('2000::'), 3);
}
