import { describe, expect, test } from 'vitest';
import {
  dialectOfRoute,
  isConnectivityCheck,
  routeOfPath,
  targetOf,
  upstreamUrl,
} from './endpoints.ts';

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
  ['GET', '/openai/models', 'https://api.example.com/models'],
  ['GET', '/anthropic/v1/models/claude-5', 'https://api.example.com/v1/models/claude-5'],
  ['GET', `/openai/models/${'m'.repeat(128)}`, `https://api.example.com/models/${'m'.repeat(128)}`],
  ['GET', '/google/models', 'https://api.example.com/models'],
  ['GET', '/google/models/gemini-3', 'https://api.example.com/models/gemini-3'],
  [
    'POST',
    '/google/models/gemini-3:generateContent',
    'https://api.example.com/models/gemini-3:generateContent',
  ],
  [
    'POST',
    '/google/models/gemini-3:countTokens',
    'https://api.example.com/models/gemini-3:countTokens',
  ],
  ['POST', '/openai.1f0e2d3c/responses', 'https://api.example.com/responses'],
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
    ['POST', '/anthropic/v1/messages/count_tokens/x'],
    ['POST', '/anthropic/x/v1/messages'],
    ['GET', '/anthropic/v1/models/'],
    ['GET', '/anthropic/x/v1/models'],
    ['GET', '/openai/x/models'],
    ['GET', '/openai/models/a/b'],
    ['GET', '/openai/models/-a'],
    ['GET', `/openai/models/${'m'.repeat(129)}`],
    ['GET', '/google/x/models'],
    ['GET', '/google/models/a:b'],
    ['GET', '/google/models/a!b'],
    ['POST', '/google/x/models/gemini-3:generateContent'],
    ['POST', '/google/models/gemini-3:generateContentX'],
    ['POST', '/openai.1f0e2d3/responses'],
    ['POST', '/openai.1f0e2d3c4/responses'],
    ['POST', '/openai.1F0E2D3C/responses'],
    ['POST', 'x/openai/responses'],
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

test.each([
  ['beta', 'true', ['false', 'xtrue', 'truex']],
  ['alt', 'sse', ['media', 'xsse', 'ssex', 'jsonx']],
  ['alt', 'json', ['xjson']],
  ['client_version', '1.0+a_b-c', ['', 'a b', ' a', 'a ', 'a'.repeat(65)]],
  ['limit', '1000', ['', 'a', '1a', 'a1', '10000']],
  ['after_id', 'a.:@~-', ['', 'a b', ' a', 'a ', 'a'.repeat(129)]],
  ['before_id', 'a.:@~-', ['', 'a b', ' a', 'a ', 'a'.repeat(129)]],
  ['pageSize', '1000', ['', 'a', '1a', 'a1', '10000']],
  ['pageToken', 'a.=~-', ['', 'a b', ' a', 'a ', 'a'.repeat(513)]],
] as const)(
  'forwards the parameter %s with the value %s only in its form',
  (name, value, others) => {
    const queryOf = (given: string) =>
      targetOf('GET', `/openai/models?${new URLSearchParams({ [name]: given })}`)?.query.get(name);
    expect(queryOf(value)).toBe(value);
    for (const other of others) expect(queryOf(other), other).toBeNull();
  },
);

test('the URL of an endpoint may end with slashes, and its parameters take precedence', () => {
  const base = 'https://api.example.com/v1//?limit=5&key=x#part';
  expect(upstream('GET', '/openai/models?limit=9&after_id=m', base)).toBe(
    'https://api.example.com/v1/models?limit=5&key=x&after_id=m',
  );
});

test('a parameter with the name of a member of every object is not forwarded', () => {
  expect(String(targetOf('GET', '/openai/models?toString=x&__proto__=y')?.query)).toBe('');
});

test('keeps what follows the first question mark, up to the next one', () => {
  expect(String(targetOf('GET', '/openai/models?limit=1?limit=2')?.query)).toBe('limit=1');
});

test('finds the route and its dialect', () => {
  expect(routeOfPath('/openai?x')).toBe('openai');
  expect(routeOfPath('/openai.1f0e2d3c/models')).toBe('openai.1f0e2d3c');
  expect(routeOfPath('/openai.1f0e2d3c')).toBe('openai.1f0e2d3c');
  expect(routeOfPath('/open-ai/models')).toBeUndefined();
  expect(dialectOfRoute('openai.1f0e2d3c')).toBe('openai');
  for (const route of [undefined, '', 'mistral', 'x.openai', 'toString']) {
    expect(dialectOfRoute(route)).toBeUndefined();
  }
});

test('recognises connectivity checks', () => {
  for (const url of ['/', '/anthropic', '/anthropic/', '/anthropic.1f0e2d3c', '/?x=1']) {
    expect(isConnectivityCheck('HEAD', url)).toBe(true);
    expect(isConnectivityCheck('GET', url)).toBe(false);
  }
  for (const url of ['/openai/models', 'x/', '/anthropic.1f0e2d3', '/anthropic.1f0e2d3c4', '/a1']) {
    expect(isConnectivityCheck('HEAD', url), url).toBe(false);
  }
  expect(isConnectivityCheck(undefined, '/')).toBe(false);
});
