const MIB = 1024 * 1024;

/** Limits per sandbox, and time limits of the gateway. */
export interface GatewayLimits {
  /** Open connections. */
  readonly connections: number;
  /** Largest request body. */
  readonly requestBytes: number;
  /** Total size of request bodies held at a time. */
  readonly heldBytes: number;
  /** Concurrent requests. */
  readonly requests: number;
  /** Longest wait for the first byte of a response, for the next one, and for the sandbox to read. */
  readonly idleMs: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  connections: 128,
  requestBytes: 32 * MIB,
  heldBytes: 32 * MIB,
  requests: 32,
  idleMs: 300_000,
};

/** Time limit of a connection to a model endpoint, including the TLS handshake. */
export const UPSTREAM_CONNECT_MS = 60_000;
