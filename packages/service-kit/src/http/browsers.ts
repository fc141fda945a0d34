/** Response headers for browsers: CORS, and security headers for responses that are not pages. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** How a server treats browsers. */
export interface BrowserRules {
  /** Origins whose pages may call the server, in the notation of browsers. */
  readonly origins: readonly string[];
  /** Whether to tell browsers to use only HTTPS from now on. */
  readonly secure: boolean;
}

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' } as const;

const METHODS = 'GET, POST, PUT, DELETE';
const REQUEST_HEADERS =
  'authorization, content-type, accept, idempotency-key, traceparent, x-request-id';
const EXPOSED_HEADERS = 'x-request-id, retry-after, ratelimit, ratelimit-policy, allow';
const PREFLIGHT_SECONDS = 600;

/**
 * Adds security headers, which a route may replace, to every response, and answers CORS for the allowed origins.
 * No cookies are involved: credentials are in the Authorization header. Register it before any hook that may refuse
 * a request, so that pages can read refusals as well.
 */
export function applyBrowserRules(app: FastifyInstance, rules: BrowserRules): void {
  const headers = rules.secure ? { ...HEADERS, ...STRICT_TRANSPORT } : HEADERS;
  const allowed = new Set(rules.origins);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(headers);
    if (allowed.size === 0) return;
    reply.header('vary', 'origin');
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return;
    reply.header('access-control-allow-origin', origin);
    reply.header('access-control-expose-headers', EXPOSED_HEADERS);
    if (isPreflight(request)) await answerPreflight(reply);
  });
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .code(204)
    .headers({
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': REQUEST_HEADERS,
      'access-control-max-age': String(PREFLIGHT_SECONDS),
    })
    .send();
}
