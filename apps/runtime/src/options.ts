import type { Config } from '@svc/config';
import { LIMITS } from '@svc/contract';
import type { Secret } from '@svc/service-kit';
import type { FastifyBaseLogger } from 'fastify';

/** Where a runtime host asks whose a session is and where it runs. */
export interface ControlPlaneAddress {
  readonly url: string;
  /** PEM of the only CA that is trusted; undefined: those the system trusts. */
  readonly ca: string | undefined;
}

/** Bounds and times of a runtime host. Times are in milliseconds. */
export interface RuntimeBounds {
  /** Between two pings of a connection; two that are not answered end it. */
  readonly keepaliveIntervalMs: number;
  /** How long a connection whose buffer is full may take nothing of it. */
  readonly stalledMs: number;
  /** From the first byte of a connection to the end of its handshake. */
  readonly handshakeMs: number;
  /** How long the other side may take to answer a close. */
  readonly closeGraceMs: number;
  /** Connections in all. */
  readonly connections: number;
  /** Connections from one address. */
  readonly connectionsPerAddress: number;
  /** Handshakes under way from one address. */
  readonly handshakesPerAddress: number;
}

export const DEFAULT_BOUNDS: RuntimeBounds = {
  keepaliveIntervalMs: LIMITS.keepaliveIntervalMs,
  stalledMs: 15_000,
  handshakeMs: 10_000,
  closeGraceMs: 10_000,
  connections: 16_384,
  connectionsPerAddress: 2_048,
  handshakesPerAddress: 512,
};

export interface RuntimeHostOptions {
  readonly config: Pick<Config, 'runtimeListen' | 'tls' | 'trustProxy'>;
  readonly logger: FastifyBaseLogger;
  /** Shared with control planes and workers. */
  readonly clusterSecret: Secret;
  /** PEM certificate chain and key; without them it speaks plain HTTP, behind a proxy. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** A promise where the control plane starts beside it: until it settles, no upgrade is answered. */
  readonly controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>;
  /** Differences to {@link DEFAULT_BOUNDS}. */
  readonly bounds?: Partial<RuntimeBounds>;
}

/** A runtime host that serves. */
export interface RuntimeHost {
  /** The `wss:` URL that it is reached by on this machine, with the port really bound. */
  readonly url: string;
  /** Refuses what is new, closes every connection with 1001 `server shutting down`, then the server. Bounded in time. */
  close(): Promise<void>;
}
