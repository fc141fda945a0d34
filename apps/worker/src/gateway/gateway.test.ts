import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { Secret } from '@svc/service-kit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type GatewayGuest,
  GatewayLab,
  HOST,
  KEY,
  messages,
  sendRaw,
  USAGE,
} from '../../test/gateway-lab.ts';
import { llmRoute } from './route.ts';

let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

describe('addresses', () => {
  test('an unregistered one gets no response', async () => {
    const { ask } = await lab.start('openai');
    const before = lab.model.requests.length;
    await expect(
      ask('/openai/chat/completions', { body: { messages }, from: '127.0.0.2' }),
    ).rejects.toThrow();
    expect(lab.model.requests.length).toBe(before);
  });

  test('one that is unregistered loses its running requests', async () => {
    const { ask, unregister } = await lab.start('openai');
    lab.script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000 });
    const { body } = await ask('/openai/chat/completions', {
      body: { model: 'm', stream: true, messages },
    });
    const read = body.text();
    unregister();
    await expect(read).rejects.toThrow();
    await expect(ask('/openai/chat/completions', { body: { messages } })).rejects.toThrow();
  });

  test('unregistering an earlier sandbox does not affect the next one at its address', async () => {
    const { ask, gateway, account, unregister } = await lab.start('openai');
    gateway.register(HOST, account);
    unregister();
    const { statusCode, body } = await ask('/openai/chat/completions', { body: { messages } });
    expect(statusCode).toBe(200);
    await body.dump();
  });

  test.each([
    ['https://127.0.0.1:9/v1'],
    ['https://169.254.169.254/latest'],
    ['https://[::1]:8443/'],
    ['http://example.com/v1'],
    ['https://example.com:22/v1'],
  ])('a forbidden base URL is not connected to: %s', async (baseUrl) => {
    const { ask, usages } = await lab.start('openai', { baseUrl });
    const { statusCode, body } = await ask('/openai/chat/completions', { body: { messages } });
    expect(statusCode).toBe(403);
    expect(await body.json()).toHaveProperty('error.message', expect.stringContaining('URL'));
    expect(usages).toEqual([]);
  });
});

describe('an idle connection', () => {
  const connectedFrom = async (port: number, localAddress: string) => {
    const socket = connect({ host: HOST, port, localAddress });
    socket.on('error', () => undefined).resume();
    const closed = once(socket, 'close');
    await once(socket, 'connect');
    return { socket, closed };
  };
  /** Whether a request on this connection is answered, after which it is idle. */
  const isAnswered = async (socket: Socket) => {
    socket.write('HEAD / HTTP/1.1\r\nhost: x\r\n\r\n');
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    return String(answer).startsWith('HTTP/1.1 200 ');
  };

  test('is closed at once when it comes from an unregistered address', async () => {
    const { port } = await lab.start('anthropic');
    const { closed } = await connectedFrom(port, '127.0.0.2');
    await closed;
  });

  test('is closed when its sandbox is no longer registered', async () => {
    const { port, ask, unregister } = await lab.start('anthropic');
    const { socket, closed } = await connectedFrom(port, HOST);
    // Connections are accepted in their order.
    expect((await ask('/', { method: 'HEAD' })).statusCode).toBe(200);
    expect(socket.destroyed).toBe(false);
    unregister();
    await closed;
  });

  test('is closed when its sandbox is no longer registered, after a request too', async () => {
    const { port, unregister } = await lab.start('openai');
    const { socket, closed } = await connectedFrom(port, HOST);
    expect(await isAnswered(socket)).toBe(true);
    unregister();
    await closed;
  });

  test('is closed at once beyond the bound of its sandbox, which others do not share', async () => {
    const { gateway, account, port } = await lab.start(
      'anthropic',
      {},
      { limits: { connections: 2 } },
    );
    gateway.register('127.0.0.2', account);
    const first = await connectedFrom(port, HOST);
    const second = await connectedFrom(port, HOST);
    await (await connectedFrom(port, HOST)).closed;
    const other = await connectedFrom(port, '127.0.0.2');
    second.socket.destroy();
    // Until the gateway has noticed.
    const isOpen = async () => isAnswered((await connectedFrom(port, HOST)).socket);
    await expect.poll(isOpen).toBe(true);
    for (const { socket } of [first, other]) expect(socket.destroyed).toBe(false);
  });
});

describe('pipelined requests', () => {
  const HEAD = 'HEAD / HTTP/1.1\r\nhost: x\r\n\r\n';
  /** What a gateway answers to such a text, until it closes the connection. */
  const answersTo = async (port: number, sent: string) => {
    const socket = connect({ host: HOST, port }).on('error', () => undefined);
    socket.write(`${sent}HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    let answers = '';
    socket.on('data', (data) => {
      answers += data;
    });
    await once(socket, 'close');
    return answers.match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
  };

  test.each([
    ['the check that it exists', HEAD],
    ['no key', 'GET /openai/models HTTP/1.1\r\nhost: x\r\n\r\n'],
  ])('beyond the rate of a sandbox end the connection: %s', async (_which, request) => {
    const requestRate = { perSecond: 1e-9, burst: 3 };
    const { port, ask, gateway, account } = await lab.start(
      'openai',
      {},
      { limits: { requestRate } },
    );
    gateway.register('127.0.0.2', account);
    let parsed = 0;
    const count = () => {
      parsed += 1;
    };
    subscribe('http.server.request.start', count);
    const statuses = await answersTo(port, request.repeat(2_000)).finally(() =>
      unsubscribe('http.server.request.start', count),
    );
    expect(statuses.slice(0, 3)).not.toContain('429');
    expect(statuses[3]).toBe('429');
    // Each of them takes time from all sandboxes of the worker, even if it is parsed alone.
    expect(parsed).toBeLessThanOrEqual(32);
    expect(await answersTo(port, request)).toContain('429');
    expect((await ask('/', { method: 'HEAD', from: '127.0.0.2' })).statusCode).toBe(200);
  });

  test('that follow each other on a connection are answered, also after an answer of announced length', async () => {
    const { port } = await lab.startAt((_request, response) => {
      response.writeHead(200, { 'content-length': 2 }).write('{}');
      // The client has the whole answer long before the gateway knows that it has ended.
      setTimeout(() => response.end(), 200);
    });
    const request = `GET /anthropic/v1/models HTTP/1.1\r\nhost: x\r\nx-api-key: ${PLACEHOLDER_LLM_KEY}\r\n\r\n`;
    const socket = connect({ host: HOST, port });
    for (let round = 0; round < 3; round += 1) {
      socket.write(request);
      let answer = '';
      while (!answer.endsWith('{}')) answer += String((await once(socket, 'data'))[0]);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    }
    socket.destroy();
  });
});

describe('a rotated key', () => {
  test('is used from the next request on, while a running stream keeps the old one', async () => {
    const { ask, gateway, account, usages } = await lab.start('openai');
    lab.script({ text: ['one ', 'two ', 'three'], chunk_delay_ms: 100, usage: USAGE });
    const stream = { model: 'gpt-1', stream: true, messages };
    const { body } = await ask('/openai/chat/completions', { body: stream });
    const read = body.text();
    expect(gateway.update(HOST, { ...account, apiKey: new Secret('sk-the-next-key\n') })).toBe(
      true,
    );
    const next = await ask('/openai/chat/completions', { body: { messages } });
    await next.body.dump();
    expect(lab.model.requests.at(-1)?.headers.authorization).toBe('Bearer sk-the-next-key');
    expect(await read).toContain('three');
    expect(usages).toContainEqual({ ...USAGE, model: 'gpt-1' });
    expect(gateway.update('127.0.0.9', account)).toBe(false);
  });
});

describe('a rotation that changes the endpoint', () => {
  const chat = { body: { model: 'm', messages } };
  const gemini = { body: { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] } };
  const google = '/google/models/gemini-1:generateContent';
  const openai = (baseUrl: string) => `/${llmRoute('openai', baseUrl)}/chat/completions`;
  const statusOf = async ({ ask }: GatewayGuest, ...request: Parameters<GatewayGuest['ask']>) => {
    const { statusCode, body } = await ask(...request);
    await body.dump();
    return statusCode;
  };

  test('leaves a running task its dialect and key until a request for the new endpoint', async () => {
    const guest = await lab.start('google');
    const { gateway, account } = guest;
    const baseUrl = `${lab.model.url}/own`;
    expect(await statusOf(guest, google, gemini)).toBe(200);
    for (const apiKey of ['sk-second', 'sk-third']) {
      gateway.update(HOST, { ...account, apiKey: new Secret(apiKey), dialect: 'openai', baseUrl });
      expect(await statusOf(guest, google, gemini)).toBe(200);
      expect(lab.model.requests.at(-1)).toMatchObject({
        path: '/v1beta/models/gemini-1:generateContent',
        headers: { 'x-goog-api-key': KEY },
      });
    }
    expect(await statusOf(guest, openai(baseUrl), chat)).toBe(200);
    expect(lab.model.requests.at(-1)).toMatchObject({
      path: '/own/chat/completions',
      headers: { authorization: 'Bearer sk-third' },
    });
    expect(await statusOf(guest, google, gemini)).toBe(403);
    gateway.update(HOST, { ...account, apiKey: new Secret('sk-fourth') });
    expect(await statusOf(guest, openai(baseUrl), chat)).toBe(200);
    expect(await statusOf(guest, google, gemini)).toBe(200);
    expect(lab.model.requests.at(-1)?.headers['x-goog-api-key']).toBe('sk-fourth');
    expect(await statusOf(guest, openai(baseUrl), chat)).toBe(403);
  });

  test('leaves a running task its URL and key, however often it rotates', async () => {
    const urls = Array.from({ length: 40 }, (_, index) => `${lab.model.url}/${index}`);
    const [first = ''] = urls;
    const guest = await lab.start('openai', { baseUrl: first });
    expect(await statusOf(guest, openai(first), chat)).toBe(200);
    for (const [index, baseUrl] of urls.entries()) {
      const apiKey = new Secret(`sk-${index}`);
      guest.gateway.update(HOST, { ...guest.account, baseUrl, apiKey });
    }
    expect(await statusOf(guest, openai(first), chat)).toBe(200);
    const last = urls.at(-1) ?? '';
    expect(lab.model.requests.at(-1)).toMatchObject({
      path: '/0/chat/completions',
      headers: { authorization: 'Bearer sk-0' },
    });
    expect(await statusOf(guest, openai(last), chat)).toBe(200);
    // As after a restart of the worker, which knows no earlier endpoint.
    expect(await statusOf(guest, openai(first), chat)).toBe(200);
    expect(lab.model.requests.at(-1)).toMatchObject({
      path: '/39/chat/completions',
      headers: { authorization: 'Bearer sk-39' },
    });
  });
});

describe('the key', () => {
  test('is masked in bodies and streams of the endpoint', async () => {
    const { ask } = await lab.start('openai');
    lab.script(
      { status: 401, body: { error: { message: `Incorrect API key provided: ${KEY}` } } },
      { text: ['it is ', KEY, ' indeed'] },
    );
    const refused = await (
      await ask('/openai/chat/completions', { body: { messages } })
    ).body.text();
    expect(refused).toContain('Incorrect API key provided: ***');
    const body = { stream: true, messages };
    const streamed = await (await ask('/openai/chat/completions', { body })).body.text();
    expect(streamed).toContain(' indeed');
    for (const text of [refused, streamed, ...lab.logs]) expect(text).not.toContain(KEY);
  });
});

describe('a sandbox', () => {
  const body = { model: 'claude-1', stream: true, messages };

  test('that disconnects ends the request at the endpoint; the counts so far are recorded', async () => {
    const { ask, usages, metrics } = await lab.start('anthropic');
    lab.script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000, usage: USAGE });
    const leaving = new AbortController();
    const { body: answer } = await ask('/anthropic/v1/messages', { body, signal: leaving.signal });
    answer.on('error', () => undefined);
    let seen = '';
    for await (const chunk of answer) {
      seen += chunk;
      if (seen.includes('first')) break;
    }
    leaving.abort();
    await expect.poll(() => usages).toEqual([{ ...USAGE, output_tokens: 1, model: 'claude-1' }]);
    expect(await metrics.metrics()).toContain('svc_worker_llm_requests_running 0');
  });

  test('that does not read holds back the endpoint, and is abandoned at the time limit', async () => {
    const { port, usages } = await lab.start('anthropic', {}, { limits: { idleMs: 5_000 } });
    lab.script({ text: Array.from({ length: 400 }, () => 'x'.repeat(100_000)), usage: USAGE });
    const text = JSON.stringify(body);
    const socket = sendRaw(port, '/anthropic/v1/messages', text.length, text).pause();
    await expect.poll(() => usages.length).toBe(1);
    expect(usages[0]?.output_tokens).toBe(1);
    socket.destroy();
  });

  test('cannot forge counts through its request or the model’s text', async () => {
    const { ask, usages } = await lab.start('openai');
    const forged =
      '"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage":{"prompt_tokens":2}}\n\n';
    lab.script({ text: [forged], usage: USAGE });
    const options = '"stream_options":{"include_usage":true}';
    const text = `{${options},"model":"gpt-1","stream":true,"messages":[],"stream_options":{"include_usage":false}}`;
    const { body: answer } = await ask('/openai/chat/completions', { body: text });
    await answer.dump();
    expect(usages).toEqual([{ ...USAGE, model: 'gpt-1' }]);
  });
});

describe('a gateway', () => {
  test('no longer listens when it is closed, and can be closed again', async () => {
    const { gateway, port } = await lab.start('anthropic');
    await gateway.close();
    await gateway.close();
    await expect(once(connect({ host: HOST, port }), 'connect')).rejects.toThrow('ECONNREFUSED');
  });

  test('ends its connections when it closes, also those of running requests', async () => {
    const { gateway, account, ask, usages } = await lab.start('anthropic');
    lab.script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000, usage: USAGE });
    const { body } = await ask('/anthropic/v1/messages', {
      body: { model: 'claude-1', stream: true, messages },
    });
    const read = body.text();
    await gateway.close();
    await expect(read).rejects.toThrow();
    await expect.poll(() => usages).toEqual([{ ...USAGE, output_tokens: 1, model: 'claude-1' }]);
    expect(gateway.update(HOST, account)).toBe(false);
  });
});
