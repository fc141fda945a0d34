import { Readable } from 'node:stream';
import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GatewayLab, KEY, messages } from '../../../test/gateway-lab.ts';

let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

describe('requests', () => {
  test('carry only the useful headers of the sandbox', async () => {
    const { ask } = await lab.start('anthropic');
    const headers = {
      'x-api-key': 'svc-llm-gateway',
      authorization: 'Bearer svc-llm-gateway',
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      forwarded: 'for=1.2.3.4',
      'x-forwarded-host': 'evil.example',
      'proxy-authorization': 'x',
      te: 'trailers',
      'openai-organization': 'org',
      accept: 'application/x-protobuf',
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a-beta',
      'user-agent': 'claude-cli',
    };
    const { body } = await ask('/anthropic/v1/messages', { body: { messages }, headers });
    await body.dump();
    const got = lab.model.requests.at(-1)?.headers ?? {};
    expect(got).toMatchObject({
      'x-api-key': KEY,
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a-beta',
      'user-agent': 'claude-cli',
      accept: 'application/json',
      host: new URL(lab.model.url).host,
    });
    const known = [
      ...['x-api-key', 'anthropic-version', 'anthropic-beta', 'user-agent', 'accept', 'host'],
      ...['accept-encoding', 'connection', 'content-type', 'content-length'],
    ];
    expect(Object.keys(got).filter((name) => !known.includes(name))).toEqual([]);
  });

  test.each([
    [{ 'x-api-key': '' }],
    [{ 'x-api-key': 'another' }],
    [{ 'x-api-key': '', authorization: `Basic ${btoa(`u:${PLACEHOLDER_LLM_KEY}`)}` }],
    // As a page of the sandbox's browser may send.
    [{ 'x-api-key': '', origin: 'https://page.example', 'content-type': 'text/plain' }],
  ])('without the placeholder key are refused: %j', async (headers) => {
    const { ask, usages } = await lab.start('anthropic');
    const before = lab.model.requests.length;
    const refused = await ask('/anthropic/v1/messages', { body: { messages }, headers });
    expect(refused.statusCode).toBe(401);
    expect(refused.headers['access-control-allow-origin']).toBeUndefined();
    expect(await refused.body.json()).toMatchObject({ error: { type: 'authentication_error' } });
    const preflight = await ask('/anthropic/v1/messages', { method: 'OPTIONS', headers });
    expect(preflight.statusCode).toBe(401);
    expect(preflight.headers['access-control-allow-headers']).toBeUndefined();
    expect(lab.model.requests.length).toBe(before);
    expect(usages).toEqual([]);
  });

  test('with the placeholder key in the header of any dialect pass', async () => {
    const { ask } = await lab.start('anthropic');
    for (const headers of [
      { 'x-api-key': PLACEHOLDER_LLM_KEY },
      { 'x-api-key': '', 'x-goog-api-key': PLACEHOLDER_LLM_KEY },
      { 'x-api-key': '', authorization: `Bearer ${PLACEHOLDER_LLM_KEY}` },
    ]) {
      const passed = await ask('/anthropic/v1/messages', { body: { messages }, headers });
      expect(passed.statusCode).toBe(200);
      await passed.body.dump();
    }
  });

  test('that check connectivity are answered by the gateway', async () => {
    const { ask } = await lab.start('anthropic');
    const before = lab.model.requests.length;
    for (const path of ['/', '/anthropic', '/anthropic/']) {
      expect((await ask(path, { method: 'HEAD' })).statusCode).toBe(200);
    }
    expect(lab.model.requests.length).toBe(before);
  });

  test('for token estimates and lists of models count no tokens', async () => {
    const { ask, usages } = await lab.start('anthropic');
    const counted = await ask('/anthropic/v1/messages/count_tokens', { body: { messages } });
    expect(await counted.body.json()).toHaveProperty('input_tokens');
    const listed = await ask('/anthropic/v1/models', { method: 'GET' });
    expect(listed.statusCode).toBe(200);
    await listed.body.dump();
    expect(usages).toEqual([]);
  });

  test('for another dialect or another path are refused in the format of their dialect', async () => {
    const { ask } = await lab.start('anthropic');
    const before = lab.model.requests.length;
    const other = await ask('/openai/chat/completions', { body: { messages } });
    expect(other.statusCode).toBe(403);
    expect(await other.body.json()).toHaveProperty('error.code', 'not_allowed');
    const unknown = await ask('/anthropic/v1/files', { body: {} });
    expect(unknown.statusCode).toBe(404);
    expect(await unknown.body.json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error' },
    });
    expect(lab.model.requests.length).toBe(before);
  });

  test('for a custom endpoint of Google or DeepSeek use the OpenAI dialect; for others, the vendor’s', async () => {
    for (const [vendor, path, upstream] of [
      ['google', '/openai/chat/completions', '/custom/chat/completions'],
      ['deepseek', '/openai/chat/completions', '/custom/chat/completions'],
      ['openai', '/openai/responses', '/custom/responses'],
      ['anthropic', '/anthropic/v1/messages', '/custom/v1/messages'],
    ] as const) {
      const { ask, gateway } = await lab.start(vendor, { baseUrl: `${lab.model.url}/custom/` });
      const { statusCode, body } = await ask(path, { body: { model: 'm', messages } });
      expect(statusCode).toBe(200);
      await body.dump();
      expect(lab.model.requests.at(-1)?.path).toBe(upstream);
      await gateway.close();
    }
  });

  test('that are too large are refused, with or without an announced length', async () => {
    for (const vendor of ['anthropic', 'openai'] as const) {
      const path = vendor === 'anthropic' ? '/anthropic/v1/messages' : '/openai/chat/completions';
      const { ask, gateway } = await lab.start(vendor, {}, { limits: { requestBytes: 100_000 } });
      const body = JSON.stringify({ messages, text: 'x'.repeat(100_000) });
      expect((await ask(path, { body })).statusCode).toBe(413);
      const unsaid = Readable.from([body, body.slice(0, 1000)], { objectMode: false });
      expect((await ask(path, { body: unsaid })).statusCode).toBe(413);
      await gateway.close();
    }
  });

  test('beyond the bound are refused until others end', async () => {
    const { ask } = await lab.start('openai');
    const bound = 32;
    lab.script(...Array.from({ length: bound }, () => ({ fault: 'hang' }) as const));
    const ended = new AbortController();
    const before = lab.model.requests.length;
    const body = { model: 'm', messages };
    const hanging = Array.from({ length: bound }, () =>
      ask('/openai/chat/completions', { body, signal: ended.signal }).catch(() => 'ended'),
    );
    await expect.poll(() => lab.model.requests.length).toBe(before + bound);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const refused = await ask('/openai/chat/completions', { body });
      expect(refused.statusCode).toBe(429);
      await refused.body.dump();
    }
    ended.abort();
    expect(new Set(await Promise.all(hanging))).toEqual(new Set(['ended']));
    await expect
      .poll(async () => (await ask('/openai/chat/completions', { body })).statusCode)
      .toBe(200);
  });
});
