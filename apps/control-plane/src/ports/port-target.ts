import type { IncomingMessage } from 'node:http';

/** A request for a port, taken apart as it was sent: nothing is decoded or normalised on its way to the guest. */
export interface PortTarget {
  /** The path below which the server in the guest appears, without a slash at its end. */
  readonly prefix: string;
  /** The path and query at the server in the guest. */
  readonly path: string;
  /** The token of a link. */
  readonly token: string | undefined;
}

const ROUTE = /^(\/v1\/sandboxes\/[^/?#]+\/ports\/[^/?#]+)(\/[^?#]*)(\?[^#]*)?/;
/** A link is a JWT as the first part of the path, so that the relative URLs of a page carry it on. */
const LINK = /^(\/~([\w-]+\.[\w-]+\.[\w-]+))(\/.*)?$/;

/** Undefined for a request of another route. */
export function portTarget({ url = '' }: Pick<IncomingMessage, 'url'>): PortTarget | undefined {
  const [, base, path, query = ''] = ROUTE.exec(url) ?? [];
  if (base === undefined || path === undefined) return undefined;
  const [, part, token, rest = '/'] = LINK.exec(path) ?? [];
  if (part === undefined) return { prefix: base, path: path + query, token: undefined };
  return { prefix: base + part, path: rest + query, token };
}

/** The path of a link to the root of the server. */
export function linkPath(vmId: string, port: number, token: string): string {
  return `/v1/sandboxes/${vmId}/ports/${port}/~${token}/`;
}
