import { describe, expect, test } from 'vitest';
import { hasPlaceholderKey } from './placeholder-key.ts';
import { requestHeaders } from './request-headers.ts';

const JSON_ALONE = { accept: 'application/json', 'accept-encoding': 'identity' };

describe('the headers of a request to a model endpoint', () => {
  test.each([
    ['anthropic', { 'x-api-key': 'the key' }],
    ['google', { 'x-goog-api-key': 'the key' }],
    ['openai', { authorization: 'Bearer the key' }],
    ['deepseek', { authorization: 'Bearer the key' }],
  ] as const)('of %s have the key where the vendor expects it', (dialect, credential) => {
    const guest = {
      authorization: 'Bearer svc-llm-gateway',
      'x-api-key': 'svc-llm-gateway',
      'x-goog-api-key': 'svc-llm-gateway',
    };
    expect(requestHeaders(guest, dialect, 'the key', false)).toEqual({
      ...JSON_ALONE,
      ...credential,
    });
  });

  test('have what the agent says about itself and its version of the API, and nothing else', () => {
    const passed = {
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a,b',
      'openai-beta': 'c',
      'user-agent': 'agent/1',
    };
    const others = { cookie: 'a=b', 'x-forwarded-for': '1.2.3.4', traceparent: 't', host: 'h' };
    expect(requestHeaders({ ...passed, ...others }, 'anthropic', 'k', false)).toEqual({
      ...JSON_ALONE,
      'x-api-key': 'k',
      ...passed,
    });
  });

  test.each([
    ['text/event-stream', 'text/event-stream'],
    ['application/json, text/event-stream;q=0.9', 'text/event-stream'],
    ['text/html', 'application/json'],
    [undefined, 'application/json'],
  ])('accept events or JSON when the agent accepts %s', (accept, accepted) => {
    const guest = accept === undefined ? {} : { accept, 'accept-encoding': 'gzip' };
    expect(requestHeaders(guest, 'openai', 'k', true)).toEqual({
      accept: accepted,
      'accept-encoding': 'identity',
      'content-type': 'application/json',
      authorization: 'Bearer k',
    });
  });
});

test.each<[boolean, Record<string, string>]>([
  [true, { authorization: 'Bearer svc-llm-gateway' }],
  [true, { 'x-api-key': 'svc-llm-gateway' }],
  [true, { 'x-goog-api-key': 'svc-llm-gateway' }],
  [false, {}],
  [false, { authorization: 'svc-llm-gateway' }],
  [false, { authorization: 'Bearer ' }],
  [false, { 'x-api-key': '' }],
  [false, { 'x-api-key': 'sk-own-key', 'x-goog-api-key': 'other' }],
  [false, { cookie: 'svc-llm-gateway' }],
])('%s: a request with %j has the placeholder', (has, headers) => {
  expect(hasPlaceholderKey(headers)).toBe(has);
});
