import type { IncomingHttpHeaders } from 'node:http';
import { withoutKey } from './key-redactor.ts';

const FORWARDED = new Set([
  'content-type',
  'content-length',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'request-id',
  'x-request-id',
  'openai-model',
  'openai-processing-ms',
  'openai-version',
]);
const RATE_LIMITS = /^(anthropic|x)-ratelimit-[a-z-]+$/;

/** The response headers useful to an agent, without those that identify the account. */
export function responseHeaders(
  upstream: IncomingHttpHeaders,
  key: string,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(upstream)) {
    if (value === undefined || !(FORWARDED.has(name) || RATE_LIMITS.test(name))) continue;
    headers[name] = withoutKey(String(value), key);
  }
  return headers;
}
