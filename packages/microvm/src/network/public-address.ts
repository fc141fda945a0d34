import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { GLOBAL_IPV6_RANGE, SPECIAL_IPV4_RANGES, SPECIAL_IPV6_RANGES } from './special-ranges.ts';

const specialIpv4 = SPECIAL_IPV4_RANGES.map((range) => ipaddr.IPv4.parseCIDR(range));
const specialIpv6 = SPECIAL_IPV6_RANGES.map((range) => ipaddr.IPv6.parseCIDR(range));
const globalIpv6 = ipaddr.IPv6.parseCIDR(GLOBAL_IPV6_RANGE);

/**
 * Whether an address is an ordinary public one: the one rule for the sandboxes' packet filters,
 * for DNS answers given to them, and for outgoing requests made on a customer's behalf.
 * Anything that is not an IP address in its usual notation (`0x7f.1`, `127.1`, a host name, an
 * address with a zone) is not public. An IPv4-mapped IPv6 address is judged as what it maps to.
 */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return false;
  if (family === 4) return isPublicIpv4(ipaddr.IPv4.parse(address));
  const ipv6 = ipaddr.IPv6.parse(canonicalIpv6(address));
  return ipv6.isIPv4MappedAddress() ? isPublicIpv4(ipv6.toIPv4Address()) : isPublicIpv6(ipv6);
}

/** Without a dotted tail, of which ipaddr.js takes `::8.8.8.8` for `::ffff:8.8.8.8`. */
function canonicalIpv6(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function isPublicIpv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !specialIpv4.some((range) => address.match(range));
}

function isPublicIpv6(address: ipaddr.IPv6): boolean {
  return address.match(globalIpv6) && !specialIpv6.some((range) => address.match(range));
}
