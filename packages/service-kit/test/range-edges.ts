import {
  GLOBAL_IPV6_RANGE,
  SPECIAL_IPV4_RANGES,
  SPECIAL_IPV6_RANGES,
} from '../src/addresses/index.ts';

/** An inclusive range of addresses, as numbers. */
type Bounds = readonly [first: bigint, last: bigint];

const IPV4_BITS = 32;
const IPV6_BITS = 128;

/** The first and last address of every special IPv4 range. */
export function insideEdges(): string[] {
  return ipv4Bounds().flat().map(ipv4Text);
}

/** The addresses next to every special IPv4 range that belong to none. */
export function outsideEdges(): string[] {
  return neighbours(ipv4Bounds(), IPV4_BITS)
    .filter((value) => !isIn(ipv4Bounds(), value))
    .map(ipv4Text);
}

/** The first and last address of every special IPv6 range. */
export function insideIpv6Edges(): string[] {
  return ipv6Bounds().flat().map(ipv6Text);
}

/** The addresses next to every special IPv6 range that belong to none, and both ends of the global range. */
export function outsideIpv6Edges(): string[] {
  const global = boundsOf(GLOBAL_IPV6_RANGE, IPV6_BITS, ipv6Number);
  return [...neighbours(ipv6Bounds(), IPV6_BITS), ...global]
    .filter((value) => isIn([global], value) && !isIn(ipv6Bounds(), value))
    .map(ipv6Text);
}

/** The addresses next to the global IPv6 range, which are not public. */
export function outsideGlobalIpv6(): string[] {
  const global = boundsOf(GLOBAL_IPV6_RANGE, IPV6_BITS, ipv6Number);
  return neighbours([global], IPV6_BITS).map(ipv6Text);
}

/** Two groups of hexadecimal digits that embed an IPv4 address in an IPv6 address. */
export function ipv6Tail(ipv4: string): string {
  return groupsOf(ipv4Number(ipv4), IPV4_BITS).join(':');
}

/** The number of an IPv4 address in dotted notation. */
export function ipv4Number(address: string): bigint {
  return address.split('.').reduce((value, octet) => (value << 8n) | BigInt(octet), 0n);
}

function ipv4Bounds(): Bounds[] {
  return SPECIAL_IPV4_RANGES.map((range) => boundsOf(range, IPV4_BITS, ipv4Number));
}

function ipv6Bounds(): Bounds[] {
  return SPECIAL_IPV6_RANGES.map((range) => boundsOf(range, IPV6_BITS, ipv6Number));
}

function boundsOf(range: string, bits: number, toNumber: (address: string) => bigint): Bounds {
  const [address = '', length = ''] = range.split('/');
  const first = toNumber(address);
  return [first, first + (1n << BigInt(bits - Number(length))) - 1n];
}

function neighbours(ranges: readonly Bounds[], bits: number): bigint[] {
  return ranges
    .flatMap(([first, last]) => [first - 1n, last + 1n])
    .filter((value) => value >= 0n && value < 1n << BigInt(bits));
}

function isIn(ranges: readonly Bounds[], value: bigint): boolean {
  return ranges.some(([first, last]) => value >= first && value <= last);
}

/** For ranges whose address ends in `::`. */
function ipv6Number(address: string): bigint {
  const groups = address.replace(/::$/, '').split(':');
  return Array.from({ length: 8 }, (_, index) => groups[index] ?? '0').reduce(
    (value, group) => (value << 16n) | BigInt(`0x${group}`),
    0n,
  );
}

function ipv4Text(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
}

function ipv6Text(value: bigint): string {
  return groupsOf(value, IPV6_BITS).join(':');
}

function groupsOf(value: bigint, bits: number): string[] {
  return Array.from({ length: bits / 16 }, (_, index) =>
    ((value >> BigInt(bits - 16 * (index + 1))) & 0xffffn).toString(16),
  );
}
