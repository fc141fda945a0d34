import { Agent, type Dispatcher, request } from 'undici';
import { EgressError } from './egress-error.ts';
import { type AllowedHost, EgressPolicy, type Resolve } from './egress-policy.ts';
import { guardedConnector } from './guarded-connector.ts';
import { trustRootsAnd } from './trusted-roots.ts';

const CONNECT_MS = 30_000;
const HEADERS_MS = 60_000;
const BODY_MS = 60_000;
const KEEP_ALIVE_MS = 30_000;

export interface EgressOptions {
  /** Hosts that are allowed although they are not public. */
  readonly allowHosts: readonly AllowedHost[];
  /** PEM file of CAs to trust in addition to those of Node. */
  readonly caFile?: string | undefined;
  /** Deadline for a connection including its TLS handshake, in milliseconds. Default 30 seconds. */
  readonly connectMs?: number;
  /** Resolves names. Default: the system's resolver. */
  readonly resolve?: Resolve;
}

export type EgressRequest = Omit<NonNullable<Parameters<typeof request>[1]>, 'dispatcher'>;
export type EgressResponse = Awaited<ReturnType<typeof request>>;

/** Makes requests on behalf of customers. */
export interface Egress {
  readonly policy: EgressPolicy;
  /** For undici. Checks every connection, see {@link guardedConnector}. Deadlines: 60 s for headers and between bytes. */
  readonly dispatcher: Dispatcher;
  /**
   * Sends one request. Redirects are not followed but returned like any other response. The caller must read or dump
   * the body of the response.
   *
   * @throws EgressError when the policy refuses it; otherwise the error of undici
   */
  request(url: string, options?: EgressRequest): Promise<EgressResponse>;
  /** Aborts the requests in progress. */
  close(): Promise<void>;
}

/** Creates the client. @throws Error when the CA file cannot be read */
export function createEgress(options: EgressOptions): Egress {
  const { allowHosts, caFile, connectMs = CONNECT_MS, resolve } = options;
  const policy = new EgressPolicy(allowHosts, resolve);
  const trust = caFile === undefined ? undefined : trustRootsAnd(caFile);
  const dispatcher = new Agent({
    connect: guardedConnector({ policy, connectMs, trust }),
    headersTimeout: HEADERS_MS,
    bodyTimeout: BODY_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  return {
    policy,
    dispatcher,
    request: async (url, rest = {}) => {
      const problem = policy.formProblemOf(url);
      if (problem !== undefined) throw new EgressError(problem);
      return await request(url, { ...rest, dispatcher });
    },
    close: () => dispatcher.destroy(),
  };
}
