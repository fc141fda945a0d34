import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPublicAddress } from '@svc/service-kit/addresses';
import { openDeadline, untilAborted } from '@svc/service-kit/concurrency';
import { EgressError } from './egress-error.ts';

const LOOKUP_TIMEOUT_MS = 5_000;
const HTTPS_PORT = 443;
const LEAST_UNPRIVILEGED_PORT = 1024;

/** A host, in URL notation, that is allowed although it is not public. Without a port, every port is allowed. */
export interface AllowedHost {
  readonly host: string;
  readonly port: number | undefined;
}

/** Resolves a name to addresses. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** The URLs and addresses that requests on behalf of customers may use. */
export class EgressPolicy {
  readonly #allowed: readonly AllowedHost[];
  readonly #resolve: Resolve;

  constructor(allowed: readonly AllowedHost[], resolve: Resolve = resolveAll) {
    this.#allowed = allowed;
    this.#resolve = resolve;
  }

  /**
   * The rule that a URL breaks, or undefined when it is allowed: https, no credentials, port 443 or an unprivileged
   * port, only public addresses. Each later connection checks its own address again.
   */
  async problemOf(text: string): Promise<string | undefined> {
    const problem = this.formProblemOf(text);
    if (problem !== undefined) return problem;
    const { host, port } = targetOf(new URL(text));
    if (this.#isException(host, port)) return undefined;
    try {
      await this.addressesOf(host, port);
      return undefined;
    } catch (error) {
      if (error instanceof EgressError) return error.problem;
      throw error;
    }
  }

  /** The rule that a URL breaks before its name is resolved, or undefined. */
  formProblemOf(text: string): string | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || url.hostname === '') return 'is not a URL';
    if (url.protocol !== 'https:') return 'must use https';
    if (url.username !== '' || url.password !== '') return 'must not hold credentials';
    const { host, port } = targetOf(url);
    return this.#portProblem(host, port);
  }

  /**
   * The addresses that a connection to this host, a name or an address, may use.
   *
   * @throws EgressError when the host does not resolve, or has an address that is neither public nor an allowed exception
   */
  async addressesOf(host: string, port: number): Promise<readonly string[]> {
    const problem = this.#portProblem(host, port);
    if (problem !== undefined) throw new EgressError(problem);
    const addresses = isIP(host) === 0 ? await resolvedInTime(this.#resolve(host)) : [host];
    if (addresses === undefined || addresses.length === 0) {
      throw new EgressError('has a host that does not resolve', 'egress_unresolved');
    }
    if (!this.#isException(host, port) && !addresses.every(isPublicAddress)) {
      throw new EgressError('has a host that is not public');
    }
    return addresses;
  }

  #portProblem(host: string, port: number): string | undefined {
    const isFine = port === HTTPS_PORT || port >= LEAST_UNPRIVILEGED_PORT;
    if (isFine || this.#isException(host, port)) return undefined;
    return 'must use port 443 or one from 1024';
  }

  #isException(host: string, port: number): boolean {
    return this.#allowed.some(
      (allowed) => allowed.host === host && (allowed.port === undefined || allowed.port === port),
    );
  }
}

function targetOf(url: URL): { host: string; port: number } {
  return {
    host: url.hostname.replace(/^\[|\]$/g, '').toLowerCase(),
    port: url.port === '' ? HTTPS_PORT : Number(url.port),
  };
}

async function resolveAll(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

/** Undefined when the name does not resolve in time. The system's resolver cannot be cancelled. */
async function resolvedInTime(
  resolving: Promise<readonly string[]>,
): Promise<readonly string[] | undefined> {
  using deadline = openDeadline(undefined, LOOKUP_TIMEOUT_MS);
  return await untilAborted(resolving, deadline.signal).catch(() => undefined);
}
