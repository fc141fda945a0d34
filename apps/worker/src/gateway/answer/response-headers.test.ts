import { expect, test } from 'vitest';
import { responseHeaders } from './response-headers.ts';

const KEY = 'sk-the-real-key';

test.each([
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
  'anthropic-ratelimit-tokens-reset',
  'x-ratelimit-remaining-requests',
])('%s is passed on', (name) => {
  expect(responseHeaders({ [name]: 'value' }, KEY)).toEqual({ [name]: 'value' });
});

test.each([
  'set-cookie',
  'openai-organization',
  'anthropic-organization-id',
  'transfer-encoding',
  'openai-ratelimit-requests',
  'my-x-ratelimit-requests',
  'x-ratelimit-',
  'x-ratelimit-org/1',
  'ratelimit',
])('%s is not', (name) => {
  expect(responseHeaders({ [name]: 'value' }, KEY)).toEqual({});
});

test('the key is masked, and a header without a value left out', () => {
  expect(
    responseHeaders({ 'request-id': `a${KEY}b${KEY}`, 'content-type': undefined }, KEY),
  ).toEqual({ 'request-id': `a${'*'.repeat(15)}b${'*'.repeat(15)}` });
});

test('a key that is too short to tell from other text is not masked', () => {
  expect(responseHeaders({ 'request-id': 'a1234567b' }, '1234567')).toEqual({
    'request-id': 'a1234567b',
  });
  expect(responseHeaders({ 'request-id': 'a12345678b' }, '12345678')).toEqual({
    'request-id': 'a********b',
  });
});
