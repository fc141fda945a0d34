import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { GLOBAL_IPV6_RANGE, SPECIAL_IPV4_RANGES, SPECIAL_IPV6_RANGES } from './special-ranges.ts';

const specialIpv4 = SPECIAL_IPV4_RANGES.map((range) => ipaddr.IPv4.parseCIDR(range));
const specialIpv6 = SPECIAL_IPV6_RANGES.map((range) => ipaddr.IPv6.parseCIDR(range));
const globalIpv6 = ipaddr.IPv6.parseCIDR(GLOBAL_IPV6_RANGE);

/**
 * Whether an address is an ordinary public one. The ranges behind this rule also make up the packet filters of
 * sandboxes; DNS answers to sandboxes and requests on behalf of customers follow the rule itself.
 *
 * Anything but an IP address in its usual notation (`0x7f.1`, `127.1`, a host name, an address with a zone) is
 * not public. An IPv4-mapped IPv6 address is judged as the IPv4 address; every other IPv6 form that embeds an
 * IPv4 address is not public.
 */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return false;
  if (family === 4) return isPublicIpv4(ipaddr.IPv4.parse(address));
  const ipv6 = ipaddr.IPv6.parse(hexadecimalIpv6(address));
  return ipv6.isIPv4MappedAddress() ? isPublicIpv4(ipv6.toIPv4Address()) : isPublicIpv6(ipv6);
}

/** The address without a dotted tail: ipaddr.js reads `::8.8.8.8` as `::ffff:8.8.8.8`. */
function hexadecimalIpv6(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function isPublicIpv4(address: ipaddr.IPv4): boolean {
  return !specialIpv4.some((range) => address.match(range));
}

function isPublicIpv6(address: ipaddr.IPv6): boolean {
  return address.match(globalIpv6) && !specialIpv6.some((range) => address.match(range));
}
