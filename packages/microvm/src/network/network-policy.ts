/** Limits on one sandbox's use of the shared network. Exceeding them affects only this sandbox. */
export interface SlotLimits {
  /** Maximum number of open connections. */
  readonly connections: number;
  /**
   * Maximum number of entries in the host's connection table. More than `connections`, because those to the gateway and
   * the DNS forwarder count too.
   */
  readonly trackedConnections: number;
  /** New connections per second, and the size of a burst. */
  readonly connectionRate: number;
  readonly connectionBurst: number;
  /** DNS queries per second, and the size of a burst. */
  readonly dnsRate: number;
  readonly dnsBurst: number;
}

export const DEFAULT_SLOT_LIMITS: SlotLimits = {
  connections: 1024,
  trackedConnections: 1536,
  connectionRate: 50,
  connectionBurst: 300,
  dnsRate: 20,
  dnsBurst: 100,
};

/** The settings of an instance's packet filters, besides its addresses. */
export interface NetworkPolicy {
  readonly limits: SlotLimits;
  /** Port of the DNS forwarder on the service address. */
  readonly dnsPort: number;
  /** Other TCP ports of the gateway that forward to the same port of the service address. */
  readonly gatewayPorts: readonly number[];
  /** Ranges (CIDR) that no guest may reach, in addition to the special ranges. */
  readonly blockedRanges: readonly string[];
}
