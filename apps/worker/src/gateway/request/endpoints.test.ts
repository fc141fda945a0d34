import { describe, expect, test } from 'vitest';
import { isConnectivityCheck, targetOf, upstreamUrl } from './endpoints.ts';

/** The upstream URL of a request; undefined for one that is not forwarded. */
function upstream(
  method: string,
  url: string,
  base = 'https://api.example.com',
): string | undefined {
  const target = targetOf(method, url);
  return target === undefined ? undefined : upstreamUrl(base, target);
}

test.each([
  ['POST', '/anthropic/v1/messages?beta=true', 'https://api.example.com/v1/messages?beta=true'],
  [
    'POST',
    '/anthropic/v1/messages/count_tokens',
    'https://api.example.com/v1/messages/count_tokens',
  ],
  ['GET', '/anthropic/v1/models?limit=20', 'https://api.example.com/v1/models?limit=20'],
  ['POST', '/openai/chat/completions', 'https://api.example.com/chat/completions'],
  ['POST', '/openai/responses', 'https://api.example.com/responses'],
  ['GET', '/openai/models/gpt-5.1', 'https://api.example.com/models/gpt-5.1'],
  ['POST', '/deepseek/chat/completions', 'https://api.example.com/chat/completions'],
  [
    'POST',
    '/google/models/gemini-3:streamGenerateContent?alt=sse',
    'https://api.example.com/models/gemini-3:streamGenerateContent?alt=sse',
  ],
])('forwards %s %s', (method, url, expected) => {
  expect(upstream(method, url)).toBe(expected);
});

test.each([
  ['https://a.example/v1', 'https://a.example/v1/chat/completions'],
  ['https://a.example/v1/', 'https://a.example/v1/chat/completions'],
  ['https://a.example:8443', 'https://a.example:8443/chat/completions'],
  ['https://a.example/x/y?api-version=1#z', 'https://a.example/x/y/chat/completions?api-version=1'],
])('appends the path to the base URL %s', (base, expected) => {
  expect(upstream('POST', '/openai/chat/completions', base)).toBe(expected);
});

describe('does not forward', () => {
  test.each([
    ['POST', '/'],
    ['POST', '/openai'],
    ['POST', '/openai/'],
    ['POST', '/openai/files'],
    ['POST', '/openai/v1/chat/completions'],
    ['POST', '/openai//chat/completions'],
    ['POST', '/openai/../anthropic/v1/messages'],
    ['POST', '/openai/chat/completions/../../organization/users'],
    ['POST', '/openai/chat/completions%2f..'],
    ['POST', '/openai/%63hat/completions'],
    ['POST', '/openai/chat\\completions'],
    ['POST', '/openai/chat/completions/'],
    ['POST', '/openai/chat/completions#x'],
    ['POST', '/openaichat/completions'],
    ['POST', '/mistral/chat/completions'],
    ['POST', 'https://other.example/openai/chat/completions'],
    ['POST', '//other.example/openai/chat/completions'],
    ['DELETE', '/openai/models/gpt-5.1'],
    ['PUT', '/openai/responses'],
    ['GET', '/openai/responses/resp_1'],
    ['GET', '/openai/models/..'],
    ['GET', '/openai/models/.'],
    ['GET', '/google/models/gemini-3:streamGenerateContent'],
    ['POST', '/google/models/../files:generateContent'],
    ['POST', '/google/models/gemini-3:batchGenerateContent'],
    ['POST', '/anthropic/v1/messages/batches'],
    ['POST', '/anthropic/v1/files'],
  ])('%s %s', (method, url) => {
    expect(upstream(method, url)).toBeUndefined();
  });

  test('query parameters that choose another response format or contain a key', () => {
    const url = '/google/models/gemini-3:generateContent';
    const query = 'key=k&alt=proto&fields=candidates&$alt=media&alt=sse';
    expect(upstream('POST', `${url}?${query}`)).toBe(
      'https://api.example.com/models/gemini-3:generateContent?alt=sse',
    );
    const base = 'https://a.example?api-version=1';
    expect(upstream('GET', '/openai/models?api-version=2&api-version=3', base)).toBe(
      'https://a.example/models?api-version=1',
    );
  });
});

test('recognises connectivity checks', () => {
  for (const url of ['/', '/anthropic', '/anthropic/', '/anthropic.1f0e2d3c', '/?x=1']) {
    expect(isConnectivityCheck('HEAD', url)).toBe(true);
    expect(isConnectivityCheck('GET', url)).toBe(false);
  }
  expect(isConnectivityCheck('HEAD', '/openai/models')).toBe(false);
});
