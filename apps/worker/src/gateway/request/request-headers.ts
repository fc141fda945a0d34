import type { IncomingHttpHeaders } from 'node:http';
import type { LlmDialect } from '@svc/contract';

const FORWARDED = ['anthropic-version', 'anthropic-beta', 'openai-beta', 'user-agent'] as const;
const EVENT_STREAM = 'text/event-stream';
const JSON_TYPE = 'application/json';

/**
 * The headers of a request to a model endpoint: the agent's useful ones, and the real key in the vendor's own header. The
 * agent cannot choose the response format, since tokens are counted only in JSON.
 */
export function requestHeaders(
  guest: IncomingHttpHeaders,
  dialect: LlmDialect,
  key: string,
  hasBody: boolean,
): Record<string, string> {
  const headers: Record<string, string> = {
    accept: guest.accept?.includes(EVENT_STREAM) ? EVENT_STREAM : JSON_TYPE,
    'accept-encoding': 'identity',
    ...(hasBody ? { 'content-type': JSON_TYPE } : {}),
    ...credential(dialect, key),
  };
  for (const name of FORWARDED) {
    const value = guest[name];
    if (value !== undefined) headers[name] = String(value);
  }
  return headers;
}

function credential(dialect: LlmDialect, key: string): Record<string, string> {
  if (dialect === 'anthropic') return { 'x-api-key': key };
  if (dialect === 'google') return { 'x-goog-api-key': key };
  return { authorization: `Bearer ${key}` };
}
