import type { Rate, Sharing } from '@svc/service-kit/concurrency';

const MIB = 1024 * 1024;

/** Limits per sandbox and tenant, and time limits of the gateway. */
export interface GatewayLimits {
  /** Open connections. */
  readonly connections: number;
  /** Largest request body. */
  readonly requestBytes: number;
  /** Total size of request bodies held at a time. */
  readonly heldBytes: number;
  /** The same of all sandboxes of a tenant. */
  readonly tenantHeldBytes: number;
  /** Concurrent requests. */
  readonly requests: number;
  /** Requests that begin, even those that are refused. */
  readonly requestRate: Rate;
  /** Longest wait for the first byte of a response, for the next one, and for the sandbox to read. */
  readonly idleMs: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  connections: 128,
  requestBytes: 32 * MIB,
  heldBytes: 32 * MIB,
  tenantHeldBytes: 128 * MIB,
  requests: 32,
  requestRate: { perSecond: 20, burst: 200 },
  idleMs: 300_000,
};

/** Bytes of requests and answers that each tenant may move on a worker in a second. */
export const GATEWAY_BYTES_PER_SECOND = 8 * MIB;

/** Request bodies: the bytes of each tenant that no other can take, and what all tenants together hold in addition. */
export const HELD_SHARING: Sharing = { own: 4 * MIB, shared: 512 * MIB };

/** Time limit of a connection to a model endpoint, including the TLS handshake. */
export const UPSTREAM_CONNECT_MS = 60_000;
