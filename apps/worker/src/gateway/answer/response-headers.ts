import type { IncomingHttpHeaders } from 'node:http';
import { withoutKey } from './key-redactor.ts';

const PASSED_ON = new Set([
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

/** What of an answer's headers means something to an agent; whose account it is does not. */
export function responseHeaders(
  upstream: IncomingHttpHeaders,
  key: string,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(upstream)) {
    if (value === undefined || !(PASSED_ON.has(name) || RATE_LIMITS.test(name))) continue;
    headers[name] = withoutKey(String(value), key);
  }
  return headers;
}
