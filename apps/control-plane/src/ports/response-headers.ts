import type { IncomingMessage } from 'node:http';
import { connectionHeaders } from './header-names.ts';
import type { PortView } from './port-view.ts';

/**
 * An opaque origin for every page of a port: it has no cookies, no storage and no service worker, and can read neither
 * the API nor another port. Without `allow-same-origin`, whatever else a page does.
 */
const SANDBOX =
  'sandbox allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-scripts';

/** Headers by which a server rules its origin, which is the API's, or by which it asks for credentials. */
const WITHHELD: ReadonlySet<string> = new Set([
  'accept-ch',
  'activate-storage-access',
  'alt-svc',
  'cache-control',
  'clear-site-data',
  'content-location',
  'content-security-policy',
  'critical-ch',
  'cross-origin-resource-policy',
  'expect-ct',
  'idp-signin-status',
  'nel',
  'observe-browsing-topics',
  'origin-agent-cluster',
  'public-key-pins',
  'public-key-pins-report-only',
  'referrer-policy',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'sec-session-registration',
  'secure-session-registration',
  'service-worker-allowed',
  'set-login',
  'shared-storage-write',
  'strict-transport-security',
  'use-as-dictionary',
  'www-authenticate',
  'x-request-id',
]);

const WITHHELD_PREFIXES = ['access-control-', 'attribution-reporting-'];

/** A page of a port may read the answers of its server. The link is its credential, so no other page can. */
const READABLE_BY_LINK = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': '*',
} as const;

const PREFLIGHT_SECONDS = '600';

/** The headers of a guest's response as its client gets them. */
export function responseHeaders(
  { headers, headersDistinct }: Pick<IncomingMessage, 'headers' | 'headersDistinct'>,
  view: PortView,
): Record<string, string | string[]> {
  const dropped = connectionHeaders(headers.connection);
  const kept = Object.entries(headersDistinct).filter(
    ([name]) =>
      !dropped.has(name) &&
      !WITHHELD.has(name) &&
      !WITHHELD_PREFIXES.some((prefix) => name.startsWith(prefix)) &&
      name !== 'set-cookie' &&
      name !== 'location',
  );
  const cookies = (headers['set-cookie'] ?? []).flatMap(
    (cookie) => view.cookies.fromGuest(cookie) ?? [],
  );
  const location = headers.location === undefined ? undefined : view.location(headers.location);
  const policy = headersDistinct['content-security-policy'] ?? [];
  return {
    ...Object.fromEntries(kept.map(([name, values = []]) => [name, onlyOne(values)])),
    ...(cookies.length === 0 ? {} : { 'set-cookie': cookies }),
    ...(location === undefined ? {} : { location }),
    ...(view.byLink ? READABLE_BY_LINK : {}),
    // Each policy of the list applies, so the guest's own can only forbid more.
    'content-security-policy': [SANDBOX, ...policy].join(', '),
    // The page is of no origin, so to browsers its images and scripts come from another one.
    'cross-origin-resource-policy': 'cross-origin',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
}

/** The answer to the question of a browser whether a page of a port may call its server. */
export function preflightHeaders(
  method: string,
  headers: string | undefined,
): Record<string, string> {
  return {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': method,
    ...(headers === undefined ? {} : { 'access-control-allow-headers': headers }),
    'access-control-max-age': PREFLIGHT_SECONDS,
  };
}

function onlyOne(values: readonly string[]): string | string[] {
  return values.length === 1 ? (values[0] ?? '') : [...values];
}
