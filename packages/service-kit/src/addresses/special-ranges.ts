/**
 * Every IPv4 range that is not ordinary public address space: IANA's special-purpose registry (RFC 6890 and
 * later), multicast, and addresses at which a cloud provider answers only its own machines. Ranges that the
 * registry calls globally reachable are included, because no customer needs them.
 */
export const SPECIAL_IPV4_RANGES = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's metadata and health endpoint
  '169.254.0.0/16', // link-local, metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // IETF protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // automatic multicast tunnelling
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking; also the links of the sandboxes
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, limited broadcast
] as const;

/** The only IPv6 space in public use. Everything outside is private, special or unassigned. */
export const GLOBAL_IPV6_RANGE = '2000::/3';

/** Ranges inside {@link GLOBAL_IPV6_RANGE} that are special or embed an IPv4 address. */
export const SPECIAL_IPV6_RANGES = [
  '2001::/23', // IETF protocol assignments: Teredo, ORCHID, benchmarking
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
] as const;
