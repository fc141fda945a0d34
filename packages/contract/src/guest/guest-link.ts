/**
 * The addresses and ports of the link between a guest and its network namespace. They are identical in every sandbox
 * and part of the image snapshots: changing a value here makes existing snapshots unusable.
 */
export const GUEST_LINK = {
  guest: '172.30.0.2',
  gateway: '172.30.0.1',
  prefixLength: 30,
  guestMac: '02:00:00:00:00:02',
  /** Fixed, because a restored guest still has it in its neighbour table. */
  gatewayMac: '02:00:00:00:00:01',
  /** Ports of the guest that its host can reach. */
  guestPorts: {
    ssh: 22,
    /** The guest's daemon for identity, files and clock. */
    channel: 7000,
    /** The agent runtime. */
    agent: 7100,
  },
  /** Port of the LLM gateway on the gateway address. */
  llmGatewayPort: 7200,
} as const;
