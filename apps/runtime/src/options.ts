import type { Config } from '@svc/config';
import { LIMITS } from '@svc/contract';
import type { ComponentIdentity, DrainTimes } from '@svc/service-kit';
import type { CertificatePair, ServerCertificate } from '@svc/service-kit/tls';
import type { FastifyBaseLogger } from 'fastify';

const MIB = 1024 * 1024;

/** The control plane at which a runtime host looks up sessions. */
export interface ControlPlaneAddress {
  readonly url: string;
  /** PEM of the only trusted CA; undefined: the system's CAs. */
  readonly ca: string | undefined;
}

/** Limits of a runtime host. Times are in milliseconds. */
export interface RuntimeBounds {
  /** Interval between pings. Two unanswered pings close a connection. */
  readonly keepaliveIntervalMs: number;
  /** The same for connections to workers, which a client waits for when its worker is lost. */
  readonly workerKeepaliveIntervalMs: number;
  /** Time without progress after which a connection with a full buffer is closed. */
  readonly stalledMs: number;
  /** Time limit of a handshake, from the first byte of the connection. */
  readonly handshakeMs: number;
  /** Time limit for the whole of a client's message. */
  readonly messageMs: number;
  /** Bytes of unfinished messages per tenant. */
  readonly unfinishedBytesPerTenant: number;
  /** Bytes per tenant of frames that a side has not read, beyond half a MiB of each connection. */
  readonly unsentBytesPerTenant: number;
  /** Time limit for the other side to answer a close. */
  readonly closeGraceMs: number;
  /** Total number of connections. */
  readonly connections: number;
  /** Connections per client address. */
  readonly connectionsPerAddress: number;
  /** Concurrent handshakes per client address. */
  readonly handshakesPerAddress: number;
  /** Connections per tenant, from the configuration. */
  readonly connectionsPerTenant: number;
}

export const DEFAULT_BOUNDS: Omit<RuntimeBounds, 'connectionsPerTenant'> = {
  keepaliveIntervalMs: LIMITS.keepaliveIntervalMs,
  workerKeepaliveIntervalMs: 8_000,
  stalledMs: 15_000,
  handshakeMs: 10_000,
  messageMs: 60_000,
  unfinishedBytesPerTenant: 64 * MIB,
  unsentBytesPerTenant: 128 * MIB,
  closeGraceMs: 10_000,
  connections: 16_384,
  connectionsPerAddress: 2_048,
  handshakesPerAddress: 512,
};

export interface RuntimeHostOptions {
  readonly config: Pick<
    Config,
    | 'runtimeListen'
    | 'runtimeInternalListen'
    | 'tls'
    | 'trustProxy'
    | 'proxyProtocol'
    | 'limits'
    | 'accessLog'
    | 'otlpEndpoint'
    | 'otlpHeaders'
    | 'traceRatio'
  >;
  readonly logger: FastifyBaseLogger;
  /** Its id and its key, which it enrols before it is given the address of the control plane. */
  readonly identity: ComponentIdentity;
  /** PEM certificate chain and key. Without them the host serves plain HTTP, for use behind a proxy. */
  readonly tls?: CertificatePair | ServerCertificate | undefined;
  /** A promise if the control plane is still starting: no upgrade is answered until it settles. */
  readonly controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>;
  /** Overrides of {@link DEFAULT_BOUNDS}. */
  readonly bounds?: Partial<RuntimeBounds>;
}

/** A running runtime host. */
export interface RuntimeHost {
  /** Its `wss:` URL on this machine, with the actual port. */
  readonly url: string;
  /** Makes readiness false and, after the notice, refuses new connections. Open ones stay; `signal` skips the notice. */
  drain(times: DrainTimes, signal: AbortSignal): Promise<void>;
  /** Refuses new connections, closes the open ones with 1001 `server shutting down`, then the server. Bounded in time. */
  close(): Promise<void>;
}
