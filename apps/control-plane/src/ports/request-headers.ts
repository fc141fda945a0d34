import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { connectionHeaders } from './header-names.ts';
import type { PortView } from './port-view.ts';

/** Credentials of the API, claims about the client that it makes itself, and what this service sets anew. */
const WITHHELD: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'expect',
  'forwarded',
  'host',
  'origin',
  'referer',
  'via',
  'x-real-ip',
]);
const HANDSHAKE = /^sec-websocket-/;

/** The headers of a request as the server in the guest gets them. */
export function requestHeaders(
  { headers }: Pick<IncomingMessage, 'headers'>,
  view: PortView,
  clientAddress: string,
): OutgoingHttpHeaders {
  const dropped = connectionHeaders(headers.connection);
  const kept = Object.entries(headers).filter(
    ([name]) => !dropped.has(name) && !WITHHELD.has(name) && !name.startsWith('x-forwarded-'),
  );
  const cookie = view.cookies.forGuest(headers.cookie);
  const origin = originFor(headers, view);
  return {
    ...Object.fromEntries(kept),
    host: view.host,
    ...(cookie === undefined ? {} : { cookie }),
    ...(origin === undefined ? {} : { origin }),
    'x-forwarded-for': clientAddress,
    'x-forwarded-host': view.publicUrl.host,
    'x-forwarded-proto': view.publicUrl.protocol.slice(0, -1),
    'x-forwarded-prefix': view.prefix,
    ...bodyHeaders(headers),
  };
}

/** Whether a request has a body. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** The headers of an upgrade to a WebSocket. */
export function upgradeHeaders(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
}

/** The handshake of an accepted WebSocket, as lines. */
export function handshakeLines(headers: IncomingHttpHeaders): string[] {
  return Object.entries(headers)
    .filter(([name]) => HANDSHAKE.test(name))
    .map(([name, value]) => `${name}: ${value}`);
}

/** Node has rejected a request with both headers, so exactly one of them delimits the body. */
function bodyHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' };
}

/** Pages of a port have an opaque origin, which is that of no other page: whoever sends it knew the link. */
function originFor({ origin }: IncomingHttpHeaders, view: PortView): string | undefined {
  const isOwn = origin === 'null' || origin === view.publicUrl.origin;
  return isOwn ? `http://${view.host}` : origin;
}
