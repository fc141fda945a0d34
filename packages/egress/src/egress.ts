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
  /** Hosts that may be reached although they are not public. */
  readonly allowHosts: readonly AllowedHost[];
  /** PEM file of CAs that are trusted beside those that Node trusts. */
  readonly caFile?: string | undefined;
  /** Deadline of a connection, with its TLS handshake; 30 s by default. */
  readonly connectMs?: number;
  /** How names are resolved; by default as the system does. */
  readonly resolve?: Resolve;
}

export type EgressRequest = Omit<NonNullable<Parameters<typeof request>[1]>, 'dispatcher'>;
export type EgressResponse = Awaited<ReturnType<typeof request>>;

/** The way out for requests on behalf of customers. */
export interface Egress {
  readonly policy: EgressPolicy;
  /** For undici: checks every connection; see {@link guardedConnector}. Deadlines: 60 s for headers, and between bytes. */
  readonly dispatcher: Dispatcher;
  /**
   * One request. Redirects are not followed, they are an answer like any other. The body of the answer has to be
   * read or dumped.
   *
   * @throws EgressError when the rules do not allow it; else what undici throws
   */
  request(url: string, options?: EgressRequest): Promise<EgressResponse>;
  /** Gives up what is under way. */
  close(): Promise<void>;
}

/** Opens the way out. Throws when the CA file cannot be read. */
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
