import { expect, test } from 'vitest';
import type { Target } from './endpoints.ts';
import { type HeldBytes, readRewritten } from './request-body.ts';

const endless: HeldBytes = { take: () => true, give: () => undefined };

function rewritten(path: string, body: string): Promise<string> {
  const target: Target = { method: 'POST', dialect: 'openai', path, query: new URLSearchParams() };
  const pieces = async function* () {
    for (let at = 0; at < body.length; at += 5) yield Buffer.from(body.slice(at, at + 5));
  };
  return readRewritten(pieces(), target, endless).then(String);
}

const chat = (body: string) => rewritten('/chat/completions', body);

test('requests the usage of a stream even if the agent did not', async () => {
  for (const options of [
    '',
    '"stream_options":{"include_usage":false},',
    '"stream_options":null,',
    '"stream_options": {"include_usage":true , "x":[{}]} ,',
    '"stre\\u0061m_options":{},',
    '"stream_options":{"include_usage":true},"stream_options":{"include_usage":false},',
  ]) {
    for (const body of [
      `{${options}"model":"m","stream":true}`,
      `{"stream":true,${options}"messages":[{"stream":false}]}`,
    ]) {
      const { stream_options, stream } = JSON.parse(await chat(body));
      expect({ stream_options, stream }).toEqual({
        stream_options: { include_usage: true },
        stream: true,
      });
    }
  }
});

test('changes nothing else', async () => {
  const body = '{ "stream" : true, "big": 12345678901234567890, "text": "ü \\u00fc" }';
  expect(await chat(body)).toBe(`{"stream_options":{"include_usage":true},${body.slice(1)}`);
  for (const untouched of [
    '{"stream":false,"stream_options":null}',
    '{"n":1}',
    '',
    'no JSON',
    '[]',
  ]) {
    expect(await chat(untouched)).toBe(untouched);
  }
});

test('disables background responses', async () => {
  expect(await rewritten('/responses', '{"background":true,"stream":true}')).toBe(
    '{"background":false,"stream":true}',
  );
});

test('refuses a member that is repeated too often', async () => {
  await expect(chat(`{${'"stream":true,'.repeat(40)}"n":1}`)).rejects.toMatchObject({
    problem: 'malformed',
  });
});
