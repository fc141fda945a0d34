import { describe, expect, test } from 'vitest';
import { countsIn, usageOf } from './tokens.ts';

const usage = (value: unknown) => usageOf(countsIn(value), undefined);
const tokens = (input_tokens: number, output_tokens: number, cached_input_tokens?: number) =>
  cached_input_tokens === undefined
    ? { input_tokens, output_tokens }
    : { input_tokens, output_tokens, cached_input_tokens };

test.each([
  [
    'Anthropic, which counts cached tokens separately',
    {
      input_tokens: 1,
      cache_read_input_tokens: 20,
      cache_creation_input_tokens: 300,
      output_tokens: 4,
    },
    tokens(321, 4, 20),
  ],
  ['Anthropic without a cache', { input_tokens: 1, output_tokens: 4 }, tokens(1, 4)],
  [
    'Anthropic that read from its cache alone',
    { cache_read_input_tokens: 20, output_tokens: 4 },
    tokens(20, 4, 20),
  ],
  [
    'Anthropic that wrote to its cache, before the end',
    { input_tokens: 1, cache_creation_input_tokens: 300 },
    tokens(301, 0),
  ],
  ['Chat Completions without an answer', { prompt_tokens: 9 }, tokens(9, 0)],
  ['an answer without its question', { completion_tokens: 4 }, tokens(0, 4)],
  [
    'Chat Completions',
    { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 5 } },
    tokens(9, 4, 5),
  ],
  [
    'a proxy that adds Anthropic’s names',
    { prompt_tokens: 9, completion_tokens: 4, cache_read_input_tokens: 5 },
    tokens(9, 4),
  ],
  [
    'DeepSeek',
    { prompt_tokens: 9, completion_tokens: 4, prompt_cache_hit_tokens: 5 },
    tokens(9, 4, 5),
  ],
  [
    'Responses',
    { input_tokens: 9, output_tokens: 4, input_tokens_details: { cached_tokens: 0 } },
    tokens(9, 4, 0),
  ],
  [
    'Google with the results of tools, before the end',
    { promptTokenCount: 9, toolUsePromptTokenCount: 20 },
    tokens(29, 0),
  ],
  ['Google without a question', { candidatesTokenCount: 4 }, tokens(0, 4)],
  [
    'the largest count',
    { prompt_tokens: Number.MAX_SAFE_INTEGER, completion_tokens: 0 },
    tokens(Number.MAX_SAFE_INTEGER, 0),
  ],
  [
    'Google, which counts thoughts separately',
    {
      promptTokenCount: 9,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 6,
      cachedContentTokenCount: 5,
    },
    tokens(9, 10, 5),
  ],
])('%s', (_name, value, expected) => {
  expect(usage(value)).toEqual(expected);
});

test('names the model, if it is known', () => {
  const counts = { input_tokens: 1 };
  expect(usageOf(counts, 'm')).toStrictEqual({ input_tokens: 1, output_tokens: 0, model: 'm' });
  expect(usageOf(counts, undefined)).toStrictEqual({ input_tokens: 1, output_tokens: 0 });
});

test('takes nested counts one level deep, and no others', () => {
  const value = { a: { b: 1, c: '2', d: { e: 3 } }, f: 4, g: null, h: -1, i: [5] };
  expect(countsIn(value)).toEqual({ 'a.b': 1, f: 4, 'i.0': 5 });
});

describe('ignores invalid counts', () => {
  test.each([
    [null],
    ['text'],
    [{}],
    [{ input_tokens: -1 }],
    [{ input_tokens: 1.5 }],
    [{ input_tokens: '1' }],
    [{ prompt_tokens: 1e300 }],
    [{ __proto__: { prompt_tokens: 1 } }],
  ])('%j', (value) => {
    expect(usage(value)).toBeUndefined();
  });
});
