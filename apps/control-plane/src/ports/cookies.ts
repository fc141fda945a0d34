/**
 * The cookies of a port. Browsers keep cookies for a host name, whatever its port and whoever set them. So each name
 * gets the sandbox and port as a prefix, and a guest receives only cookies that it set itself.
 */
export class PortCookies {
  readonly #prefix: string;
  readonly #path: string;
  readonly #secure: boolean;

  /** @param path the path below which the server appears; `secure`: whether browsers come by HTTPS */
  constructor(vmId: string, port: number, path: string, secure: boolean) {
    this.#prefix = `${vmId}.${port}.`;
    this.#path = path;
    this.#secure = secure;
  }

  /** The `Cookie` header for the guest; undefined when it gets none. */
  forGuest(header: string | undefined): string | undefined {
    const own = (header ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(this.#prefix))
      .map((pair) => pair.slice(this.#prefix.length));
    return own.length === 0 ? undefined : own.join('; ');
  }

  /** A `Set-Cookie` header of the guest for its client; undefined for one without a name. */
  fromGuest(header: string): string | undefined {
    const [pair = '', ...attributes] = header.split(';').map((part) => part.trim());
    if (pair.indexOf('=') < 1) return undefined;
    const kept = attributes.filter((part) => !REPLACED.has(nameOf(part)));
    const path = attributes
      .findLast((part) => nameOf(part) === 'path')
      ?.split('=')[1]
      ?.trim();
    return [
      this.#prefix + pair,
      ...kept,
      `Path=${this.#path}${path?.startsWith('/') === true ? path : '/'}`,
      // A page of a port has an origin of its own. To browsers, even its requests to its server come from another site.
      ...(this.#secure ? ['Secure', 'SameSite=None'] : []),
    ].join('; ');
  }
}

const REPLACED: ReadonlySet<string> = new Set([
  'domain',
  'path',
  'secure',
  'samesite',
  'partitioned',
  '',
]);

function nameOf(attribute: string): string {
  return (attribute.split('=')[0] ?? '').trim().toLowerCase();
}
