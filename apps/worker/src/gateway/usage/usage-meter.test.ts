import { describe, expect, test } from 'vitest';
import { UsageMeter } from './usage-meter.ts';

const EVENTS = 'text/event-stream; charset=utf-8';

/** What is counted in a response that arrives in chunks of `size` bytes. */
function usageOf(response: string, contentType: string | undefined, size = 1000) {
  const meter = new UsageMeter(contentType);
  const bytes = Buffer.from(response);
  for (let at = 0; at < bytes.length; at += size) meter.push(bytes.subarray(at, at + size));
  return meter.usage;
}
const eventsOf = (...data: object[]) =>
  data.map((one) => `event: e\ndata: ${JSON.stringify(one)}\n\n`).join('');

describe.each([1, 5, 1000])('in chunks of %i bytes, the tokens are counted', (size) => {
  const openai = { prompt_tokens: 9, completion_tokens: 4 };
  const counted = { input_tokens: 9, output_tokens: 4, model: 'm' };

  test.each([
    ['Anthropic', { type: 'message', model: 'm', usage: { input_tokens: 9, output_tokens: 4 } }],
    ['Chat Completions', { choices: [{ text: '"usage": {}' }], model: 'm', usage: openai }],
    [
      'Google',
      { modelVersion: 'm', usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4 } },
    ],
  ])('of a complete response of %s', (_vendor, response) => {
    for (const type of ['application/json', undefined, 'text/plain; like=text/event-stream']) {
      expect(usageOf(JSON.stringify(response), type, size)).toEqual(counted);
    }
  });

  test('of a stream of Google that is an array', () => {
    const google = (output: number) => ({
      modelVersion: 'm',
      usageMetadata: { promptTokenCount: 9, candidatesTokenCount: output },
    });
    const response = JSON.stringify([google(1), google(4)]);
    expect(usageOf(response, 'application/json', size)).toEqual(counted);
  });

  test('of a stream of Anthropic, whose later counts replace earlier ones', () => {
    const response = eventsOf(
      { message: { model: 'm', usage: { input_tokens: 9, output_tokens: 1 } } },
      { delta: { text: 'usage' } },
      { usage: { output_tokens: 3 } },
      { usage: { output_tokens: 4 } },
    );
    expect(usageOf(response, EVENTS, size)).toEqual(counted);
  });

  test('of a stream of Responses', () => {
    const response = eventsOf(
      { response: { model: 'm', usage: null } },
      { response: { model: 'm', usage: { input_tokens: 9, output_tokens: 4 } } },
    );
    expect(usageOf(response, EVENTS, size)).toEqual(counted);
  });

  test('after an event that is cut off', () => {
    const response = `data: {"message":{"usage":{"input_tokens":1\n\n${eventsOf({ model: 'm', usage: openai })}`;
    expect(usageOf(response, EVENTS, size)).toEqual(counted);
  });
});

describe('nothing is counted', () => {
  test.each([
    ['in an empty response', ''],
    ['in a text', 'the usage is {"input_tokens":9}'],
    ['without counts', '{"model":"m","usage":{}}'],
    ['in what is no JSON', '{"usage":{"input_tokens":9 8}}'],
    ['that is too long', `{"usage":{"input_tokens":9,"x":"${'x'.repeat(65_536)}"}}`],
    ['at another path', '{"result":{"usage":{"input_tokens":9}}}'],
  ])('%s', (_what, response) => {
    expect(usageOf(response, 'application/json')).toBeUndefined();
  });
});

test.each([
  ['a number', 7, undefined],
  ['a long text', 'm'.repeat(129), 'm'.repeat(128)],
])('a model that is %s', (_what, model, shown) => {
  const response = JSON.stringify({ model, usage: { input_tokens: 9 } });
  expect(usageOf(response, 'application/json')).toStrictEqual({
    input_tokens: 9,
    output_tokens: 0,
    ...(shown === undefined ? {} : { model: shown }),
  });
});

test.each([
  [15, 9],
  [16, undefined],
])('after %i values that are not JSON, the input tokens are %s', (count, tokens) => {
  const response = `{${'"usage":x,'.repeat(count)}"usage":{"input_tokens":9}}`;
  expect(usageOf(response, 'application/json')?.input_tokens).toBe(tokens);
});
