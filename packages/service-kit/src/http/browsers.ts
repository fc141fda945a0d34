/** What an API tells browsers: which pages may call it, and that no answer is a page unless it says so. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** How a server treats browsers. */
export interface BrowserRules {
  /** Origins whose pages may call it, as browsers write them; none by default. */
  readonly origins: readonly string[];
  /** Tells browsers to come by HTTPS only from now on. */
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
const REQUEST_HEADERS = 'authorization, content-type, accept, idempotency-key, x-request-id';
const EXPOSED_HEADERS = 'x-request-id, retry-after, ratelimit, ratelimit-policy, allow';
const PREFLIGHT_SECONDS = 600;

/**
 * Puts security headers on every answer, which a route may replace, and answers CORS for the origins
 * of the rules. No cookies are involved: credentials are in the Authorization header.
 * Register it before anything that may refuse a request, so that refusals can be read by pages too.
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
