import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startHttpServer } from '../../../test/http-server.ts';
import type { Target } from './endpoints.ts';
import { type HeldBytes, isRewritten, limitedBody, readRewritten } from './request-body.ts';

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
  expect(await chat(`\n ${body}`)).toBe(
    `\n {"stream_options":{"include_usage":true},${body.slice(1)}`,
  );
  for (const untouched of [
    '{"stream":false,"stream_options":null}',
    '{"stream":null,"stream_options":null}',
    '{"background":true,"stream_options":null}',
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

test('refuses a member that is repeated more than 16 times', async () => {
  const repeated = (count: number) => chat(`{${'"stream":true,'.repeat(count)}"n":1}`);
  expect(await repeated(16)).toContain('include_usage');
  for (const count of [17, 40]) {
    await expect(repeated(count)).rejects.toMatchObject({ problem: 'malformed' });
  }
});

test('refuses a body for which the gateway has no room, at the chunk that is too much', async () => {
  let read = 0;
  const pieces = async function* () {
    for (;;) {
      read += 1;
      yield Buffer.alloc(10);
    }
  };
  let free = 35;
  const held: HeldBytes = {
    take(bytes) {
      if (bytes > free) return false;
      free -= bytes;
      return true;
    },
    give: () => undefined,
  };
  const target: Target = {
    method: 'POST',
    dialect: 'openai',
    path: '/responses',
    query: new URLSearchParams(),
  };
  await expect(readRewritten(pieces(), target, held)).rejects.toMatchObject({
    problem: 'too_much_held',
  });
  expect(read).toBe(4);
});

test.each([
  ['POST', '/chat/completions', true],
  ['POST', '/responses', true],
  ['POST', '/v1/messages', false],
  ['GET', '/responses', false],
] as const)('%s %s is rewritten: %s', (method, path, expected) => {
  const target: Target = { method, dialect: 'openai', path, query: new URLSearchParams() };
  expect(isRewritten(target)).toBe(expected);
});

/** A request with this body as its server sees it, and the status of its answer. */
async function received(body: string) {
  const { server, host, port } = await startHttpServer();
  const sent = request({ port, host, method: 'POST', agent: false });
  const status = once(sent, 'response').then(([{ statusCode }]) => statusCode);
  sent.end(body);
  const [incoming, response] = await once(server, 'request');
  return { incoming: incoming as IncomingMessage, response, status };
}

test('a body may have as many bytes as the limit', async () => {
  const { incoming, response, status } = await received('x'.repeat(1000));
  expect((await buffer(limitedBody(incoming, 1000))).length).toBe(1000);
  response.end();
  expect(await status).toBe(200);
});

test('a body beyond the limit is refused, and can be answered', async () => {
  const { incoming, response, status } = await received('x'.repeat(1001));
  await expect(buffer(limitedBody(incoming, 1000))).rejects.toMatchObject({ problem: 'too_large' });
  response.writeHead(413).end();
  expect(await status).toBe(413);
});
