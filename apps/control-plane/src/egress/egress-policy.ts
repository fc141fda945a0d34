import { lookup } from 'node:dns/promises';
import type { Config } from '@svc/service-kit';
import { isPublicAddress } from './public-addresses.ts';

const LOOKUP_TIMEOUT_MS = 5_000;
const LEAST_UNPRIVILEGED_PORT = 1024;

/** Resolves a name to addresses. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** Where requests on behalf of a customer may go. */
export class EgressPolicy {
  readonly #allowed: Config['egressAllowHosts'];
  readonly #resolve: Resolve;

  constructor(allowed: Config['egressAllowHosts'], resolve: Resolve = resolveAll) {
    this.#allowed = allowed;
    this.#resolve = resolve;
  }

  /**
   * Why this URL may not be used, or undefined when it may: https, no credentials, port 443 or an
   * unprivileged one, every address public. A connection made later checks its own address again.
   */
  async problemOf(text: string): Promise<string | undefined> {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || url.hostname === '') return 'is not a URL';
    if (url.protocol !== 'https:') return 'must use https';
    if (url.username !== '' || url.password !== '') return 'must not hold credentials';
    const port = url.port === '' ? 443 : Number(url.port);
    const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
    if (this.#isException(host, port)) return undefined;
    if (port !== 443 && port < LEAST_UNPRIVILEGED_PORT) return 'must use port 443 or one from 1024';
    return this.#addressProblem(host);
  }

  async #addressProblem(host: string): Promise<string | undefined> {
    const addresses = await withDeadline(this.#resolve(host));
    if (addresses === undefined || addresses.length === 0)
      return 'has a host that does not resolve';
    return addresses.every(isPublicAddress) ? undefined : 'has a host that is not public';
  }

  #isException(host: string, port: number): boolean {
    return this.#allowed.some(
      (allowed) => allowed.host === host && (allowed.port === undefined || allowed.port === port),
    );
  }
}

async function resolveAll(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

/** The system's resolver cannot be cancelled; its late answer is not waited for. */
async function withDeadline(
  resolving: Promise<readonly string[]>,
): Promise<readonly string[] | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), LOOKUP_TIMEOUT_MS);
  try {
    return await Promise.race([resolving.catch(() => undefined), promise]);
  } finally {
    clearTimeout(timer);
  }
}
