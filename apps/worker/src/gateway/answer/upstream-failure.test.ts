import { once } from 'node:events';
import { createEgress } from '@svc/egress';
import { Secret } from '@svc/service-kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GatewayLab, HOST, KEY, messages, sendRaw, USAGE } from '../../../test/gateway-lab.ts';

let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

describe('an endpoint', () => {
  const body = { model: 'claude-1', stream: true, messages };
  const path = '/anthropic/v1/messages';

  test('that hangs is abandoned at the time limit', async () => {
    const { ask } = await lab.start('anthropic', {}, { limits: { idleMs: 200 } });
    lab.script({ fault: 'hang' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(504);
    expect(await answer.json()).toMatchObject({ error: { type: 'timeout_error' } });
  });

  test('that hangs during the response is abandoned at the time limit; its counts so far are recorded', async () => {
    const { ask, usages } = await lab.start('anthropic', {}, { limits: { idleMs: 5_000 } });
    lab.script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000, usage: USAGE });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(() => usages).toEqual([{ ...USAGE, output_tokens: 1, model: 'claude-1' }]);
  });

  test('that is cut off ends the response; its counts so far are recorded', async () => {
    const { ask, usages } = await lab.start('anthropic');
    lab.script({ text: ['first', 'second'], fault: 'cut', usage: USAGE });
    const { body: answer } = await ask(path, { body });
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(() => usages).toEqual([{ ...USAGE, output_tokens: 1, model: 'claude-1' }]);
  });

  test('that resets the connection results in 502', async () => {
    const { ask } = await lab.start('anthropic');
    lab.script({ fault: 'close' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(502);
    const text = await answer.text();
    expect(text).toContain('api_error');
    expect(text).not.toContain(HOST);
  });

  test('that sends garbage is forwarded, and nothing is counted', async () => {
    const { ask, usages } = await lab.start('anthropic');
    lab.script({ fault: 'garbage' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(200);
    expect(await answer.text()).toContain('html');
    expect(usages).toEqual([]);
  });

  test('with an untrusted certificate gets no request', async () => {
    const allowHosts = [{ host: HOST, port: undefined }];
    const distrusting = createEgress({ allowHosts });
    lab.endLater(() => distrusting.close());
    const { ask } = await lab.start('anthropic', {}, { egress: distrusting });
    const before = lab.model.requests.length;
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(502);
    expect(await answer.text()).toContain('certificate');
    expect(lab.model.requests.length).toBe(before);
  });
});

describe.each([
  ['anthropic', '/anthropic/v1/messages', { error: { type: 'authentication_error' } }],
  ['openai', '/openai/chat/completions', { error: { code: 'invalid_api_key' } }],
  ['google', '/google/models/m:generateContent', { error: { status: 'UNAUTHENTICATED' } }],
] as const)('a key of %s', (vendor, path, error) => {
  test.each([
    ['a line break', 'sk-the\nkey'],
    ['a typographic quote', '\u201csk-the-key\u201d'],
    ['a zero byte', 'sk-the\0key'],
  ])('with %s is refused before the endpoint is asked', async (_what, key) => {
    const { ask } = await lab.start(vendor, { apiKey: new Secret(key) });
    const before = lab.model.requests.length;
    lab.logs.length = 0;
    const { statusCode, body } = await ask(path, { body: { messages } });
    const text = await body.text();
    expect({ statusCode, text }).toEqual({
      statusCode: 401,
      text: expect.stringContaining('characters that no header can have'),
    });
    expect(JSON.parse(text)).toMatchObject(error);
    expect(text).not.toContain('sk-the');
    expect(lab.model.requests.length).toBe(before);
    expect(lab.logs).toEqual([]);
  });

  test('with a line break at its end, or a letter of Latin-1, is used', async () => {
    const { ask } = await lab.start(vendor, { apiKey: new Secret('sk-the-k\u00e9y\n') });
    lab.script({ text: 'yes' });
    const { statusCode, body } = await ask(path, { body: { messages } });
    expect(await body.text()).toContain('yes');
    expect(statusCode).toBe(200);
  });
});

describe('an unusual endpoint', () => {
  const path = '/anthropic/v1/messages';

  test('that redirects is not followed', async () => {
    const { ask } = await lab.startAt((_request, response) =>
      response.writeHead(302, { location: lab.model.url }).end(),
    );
    const before = lab.model.requests.length;
    const { statusCode, headers, body } = await ask(path, { body: { messages } });
    expect({ statusCode, location: headers.location }).toEqual({ statusCode: 502 });
    expect(await body.text()).toContain('redirects');
    expect(lab.model.requests.length).toBe(before);
  });

  test('that compresses although asked not to is not forwarded', async () => {
    const { ask } = await lab.startAt((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    );
    const { statusCode, body } = await ask(path, { body: { messages } });
    expect(statusCode).toBe(502);
    expect(await body.text()).toContain('compresses');
  });

  test('does not reveal the account to the sandbox', async () => {
    const { ask } = await lab.startAt((_request, response) =>
      response
        .writeHead(200, {
          'set-cookie': 'a=b',
          'anthropic-organization-id': 'org',
          'request-id': `req-${KEY}`,
          'anthropic-ratelimit-requests-remaining': '9',
        })
        .end('{}'),
    );
    const { headers, body } = await ask(path, { body: { messages } });
    await body.dump();
    expect(headers).not.toHaveProperty('set-cookie');
    expect(headers).not.toHaveProperty('anthropic-organization-id');
    expect(headers).toHaveProperty('anthropic-ratelimit-requests-remaining', '9');
    expect(headers['request-id']).toMatch(/^req-\*+$/);
  });

  test('that responds before the end of the request is forwarded, even if the sandbox then disconnects', async () => {
    const { port } = await lab.startAt((_request, response) => response.writeHead(401).end('no'));
    const socket = sendRaw(port, path, 9_000_000, 'x'.repeat(1_000_000));
    const [head] = await once(socket, 'data');
    expect(String(head)).toContain('401');
    socket.destroy();
    await once(socket, 'close');
  });
});
