export { listenAddress } from './listen-address.ts';
export { isLoopback } from './loopback.ts';
export { isPublicAddress } from './public-address.ts';
export { GLOBAL_IPV6_RANGE, SPECIAL_IPV4_RANGES, SPECIAL_IPV6_RANGES } from './special-ranges.ts';
