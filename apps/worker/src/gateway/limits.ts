const MIB = 1024 * 1024;

/** What one sandbox may use of the gateway, and how long the gateway waits. */
export interface GatewayLimits {
  readonly requestBytes: number;
  /** Request bodies that are held at the same time. */
  readonly heldBytes: number;
  /** Requests at the same time. */
  readonly requests: number;
  /** Until the first byte of an answer, between two of its bytes, and for the sandbox to take one. */
  readonly idleMs: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  requestBytes: 32 * MIB,
  heldBytes: 32 * MIB,
  requests: 32,
  idleMs: 300_000,
};

/** Deadline of a connection to a model endpoint, with its TLS handshake. */
export const UPSTREAM_CONNECT_MS = 60_000;
