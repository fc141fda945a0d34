/**
 * The link between a guest and its network namespace. It is the same in every sandbox and part of
 * the image snapshots: changing a value here makes existing snapshots unusable.
 */
export const GUEST_LINK = {
  guest: '172.30.0.2',
  gateway: '172.30.0.1',
  prefixLength: 30,
  guestMac: '02:00:00:00:00:02',
  /** Fixed, because a restored guest still holds it in its neighbour table. */
  gatewayMac: '02:00:00:00:00:01',
  tap: 'tap0',
  /** Ports of the guest that its host reaches: SSH, the guest channel and the agent runtime. */
  guestPorts: [22, 7000, 7100],
} as const;
