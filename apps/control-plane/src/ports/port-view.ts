import { PortCookies } from './cookies.ts';
import type { PortTarget } from './port-target.ts';

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '0.0.0.0']);
const WEB: ReadonlySet<string> = new Set(['http:', 'https:']);

/** One port as its client sees it, and as the server in the guest sees itself. */
export class PortView {
  readonly port: number;
  readonly prefix: string;
  readonly path: string;
  /** The host name that servers expect of a visitor in the guest. */
  readonly host: string;
  readonly cookies: PortCookies;
  /** Whether the client came by a link. */
  readonly byLink: boolean;
  readonly publicUrl: URL;

  /** @param baseUrl public URL of the control plane */
  constructor(vmId: string, port: number, { prefix, path, token }: PortTarget, baseUrl: string) {
    this.port = port;
    this.prefix = prefix;
    this.path = path;
    this.host = `localhost:${port}`;
    this.byLink = token !== undefined;
    this.publicUrl = new URL(baseUrl);
    this.cookies = new PortCookies(vmId, port, prefix, this.publicUrl.protocol === 'https:');
  }

  /**
   * Where a redirect of the guest leads its client: to the port's own pages below its prefix, whatever dots are in the
   * path, or to another site. Nothing at the API's own address but this port can be reached, since a client might send
   * its key there. Undefined when it leads nowhere.
   */
  location(value: string): string | undefined {
    const url = URL.parse(value, `http://${this.host}${this.path}`);
    if (url === null || !WEB.has(url.protocol)) return undefined;
    const isPublic = url.host === this.publicUrl.host;
    if (!isPublic && !this.#isOwn(url)) return url.href;
    const isBelow = isPublic && url.pathname.startsWith(`${this.prefix}/`);
    return (isBelow ? '' : this.prefix) + url.pathname + url.search + url.hash;
  }

  /** The public address of a WebSocket that the server in the guest announces as its own; undefined for any other. */
  webSocketUrl(value: string): string | undefined {
    const url = URL.parse(value);
    if (url?.protocol !== 'ws:' || !this.#isOwn(url)) return undefined;
    const mapped = new URL(this.prefix + url.pathname + url.search, this.publicUrl);
    mapped.protocol = this.publicUrl.protocol === 'https:' ? 'wss:' : 'ws:';
    return mapped.href;
  }

  #isOwn({ hostname, port, protocol }: URL): boolean {
    const standard = protocol === 'https:' ? '443' : '80';
    return LOOPBACK_NAMES.has(hostname) && (port || standard) === String(this.port);
  }
}
