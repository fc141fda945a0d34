import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayGuest, GatewayLab, messages, sendRaw } from '../../test/gateway-lab.ts';

const PATH = '/anthropic/v1/messages';
const CHAT = '/openai/chat/completions';
let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

/** A chat request as JSON of so many bytes. */
function chatOf(bytes: number): string {
  const withText = (text: string) => JSON.stringify({ model: 'm', text, messages: [] });
  return withText('x'.repeat(bytes - withText('').length));
}

/** The status of the answer to a chat request of so many bytes. */
async function statusOf({ ask }: GatewayGuest, path: string, bytes: number): Promise<number> {
  const { statusCode, body } = await ask(path, { body: chatOf(bytes) });
  await body.dump();
  return statusCode;
}

describe('a request body', () => {
  test('has the length that the sandbox announced', async () => {
    const { ask } = await lab.start('anthropic');
    const text = JSON.stringify({ messages });
    const { body } = await ask(PATH, { body: text });
    await body.dump();
    expect(lab.model.requests.at(-1)?.headers).toMatchObject({
      'content-length': String(text.length),
    });
  });

  test.each([
    [PATH, 'anthropic'],
    [CHAT, 'openai'],
  ] as const)('of exactly the limit is forwarded to %s', async (path, vendor) => {
    const requestBytes = 10_000;
    const guest = await lab.start(vendor, {}, { limits: { requestBytes } });
    expect(await statusOf(guest, path, requestBytes)).toBe(200);
    expect(await statusOf(guest, path, requestBytes + 1)).toBe(413);
  });

  test('that is announced to be too large is refused before it arrives', async () => {
    const { port } = await lab.start('anthropic', {}, { limits: { requestBytes: 10_000 } });
    const socket = sendRaw(port, PATH, 10_001);
    const [head] = await once(socket, 'data');
    expect(String(head)).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  test('is refused when it is compressed', async () => {
    const { ask } = await lab.start('anthropic');
    const before = lab.model.requests.length;
    const headers = { 'content-encoding': 'gzip' };
    const { statusCode, body } = await ask(PATH, { body: JSON.stringify({ messages }), headers });
    expect(statusCode).toBe(400);
    expect(await body.text()).toContain('uncompressed');
    expect(lab.model.requests.length).toBe(before);
  });

  test('that is rewritten is held within the bound, until it is sent', async () => {
    const guest = await lab.start('openai', {}, { limits: { heldBytes: 50_000 } });
    for (let round = 0; round < 3; round += 1) {
      expect(await statusOf(guest, CHAT, 30_000)).toBe(200);
      expect(await statusOf(guest, CHAT, 60_000)).toBe(429);
    }
  });

  test('that is not rewritten is not held', async () => {
    const guest = await lab.start('anthropic', {}, { limits: { heldBytes: 50_000 } });
    expect(await statusOf(guest, PATH, 60_000)).toBe(200);
  });
});

describe('an answer', () => {
  test('begins when the endpoint has sent its headers, without a body yet', async () => {
    const { ask } = await lab.startAt((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
    );
    const leaving = new AbortController();
    const { statusCode, headers, body } = await ask(PATH, {
      body: { messages },
      signal: leaving.signal,
    });
    body.on('error', () => undefined);
    expect(statusCode).toBe(200);
    expect(headers['content-type']).toBe('text/event-stream');
    leaving.abort();
  });

  test.each([
    [200, {}, 200],
    [300, {}, 502],
    [399, {}, 502],
    [400, {}, 400],
    [200, { 'content-encoding': 'identity' }, 200],
    [200, { 'content-encoding': 'br' }, 502],
  ])('of status %i with %j becomes %i', async (status, headers, expected) => {
    const { ask } = await lab.startAt((_request, response) =>
      response.writeHead(status, headers).end('{}'),
    );
    const { statusCode, body } = await ask(PATH, { body: { messages } });
    await body.dump();
    expect(statusCode).toBe(expected);
  });

  test('that is refused is no longer read', async () => {
    const closed = Promise.withResolvers<void>();
    const { ask } = await lab.startAt((_request, response) => {
      response.once('close', () => closed.resolve());
      response.writeHead(302, { location: lab.model.url }).write('x');
    });
    const { statusCode, body } = await ask(PATH, { body: { messages } });
    await body.dump();
    expect(statusCode).toBe(502);
    await closed.promise;
  });

  test('counts tokens where a request costs some, whatever the answers to others say', async () => {
    const answers = [
      { usage: { input_tokens: 5, output_tokens: 5 } },
      { model: 'claude-1' },
      { model: 'claude-1', usage: { input_tokens: 1, output_tokens: 2 } },
    ];
    lab.logs.length = 0;
    const { ask, usages } = await lab.startAt((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(answers.shift())),
    );
    for (const [path, method] of [
      ['/anthropic/v1/models', 'GET'],
      [PATH, 'POST'],
      [PATH, 'POST'],
    ] as const) {
      const { body } = await ask(path, { method, ...(method === 'POST' ? { body: {} } : {}) });
      await body.dump();
    }
    await expect
      .poll(() => usages)
      .toEqual([{ input_tokens: 1, output_tokens: 2, model: 'claude-1' }]);
    expect(lab.logs).toEqual([]);
  });
});
