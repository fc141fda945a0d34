/** What one sandbox may use of the shared network; beyond it only this sandbox suffers. */
export interface SlotLimits {
  /** Connections open at the same time. */
  readonly connections: number;
  /** New connections per second, and how many may come at once. */
  readonly connectionRate: number;
  readonly connectionBurst: number;
  /** DNS queries per second, and how many may come at once. */
  readonly dnsRate: number;
  readonly dnsBurst: number;
}

export const DEFAULT_SLOT_LIMITS: SlotLimits = {
  connections: 1024,
  connectionRate: 50,
  connectionBurst: 300,
  dnsRate: 20,
  dnsBurst: 100,
};

/** What the packet filters of an instance need to know beside its addresses. */
export interface NetworkPolicy {
  readonly limits: SlotLimits;
  /** Port of the DNS forwarder on the service address. */
  readonly dnsPort: number;
  /** Further TCP ports of the gateway that lead to the same port of the service address. */
  readonly gatewayPorts: readonly number[];
  /** Ranges (CIDR) that no guest may reach, beside every special one. */
  readonly blockedRanges: readonly string[];
}
