import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dialectOf, type LlmVendor } from '@svc/contract';
import { createEgress, type Egress } from '@svc/egress';
import { type ModelServer, type Reply, startModelServer } from '@svc/model-server';
import { Secret } from '@svc/service-kit';
import { type CertificatePair, createCa, issueCertificate } from '@svc/service-kit/tls';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { Agent, type Dispatcher, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { LlmAccount, LlmUsage } from './account.ts';
import { LlmGateway, type LlmGatewayOptions } from './gateway.ts';

const HOST = '127.0.0.1';
const KEY = 'sk-the-real-key-of-the-customer';
const NO_RULES = { rules: [] };

let directory: string;
let caFile: string;
let tls: CertificatePair;
let model: ModelServer;
let egress: Egress;
let vendorBaseUrls: Record<LlmVendor, string>;
const logs: string[] = [];
/** Ended after each test, the latest first. */
const open: (() => unknown)[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-gateway-'));
  caFile = join(directory, 'ca.pem');
  const ca = await createCa('test CA', 1);
  await writeFile(caFile, ca.cert);
  tls = await issueCertificate(ca, { commonName: 'model', names: [HOST], days: 1 });
  model = await startModelServer({ script: NO_RULES, tls });
  egress = createEgress({
    allowHosts: [{ host: HOST, port: Number(new URL(model.url).port) }],
    caFile,
  });
  vendorBaseUrls = {
    anthropic: model.url,
    openai: `${model.url}/v1`,
    google: `${model.url}/v1beta`,
    deepseek: model.url,
  };
});

afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
  model.setScript(NO_RULES);
});

afterAll(async () => {
  await egress?.close();
  await model?.close();
  await rm(directory, { recursive: true, force: true });
});

interface Sandbox {
  readonly gateway: LlmGateway;
  readonly port: number;
  readonly account: LlmAccount;
  readonly usages: LlmUsage[];
  readonly metrics: Registry;
  readonly unregister: () => void;
  ask(path: string, options?: AskOptions): Promise<Dispatcher.ResponseData>;
}

interface AskOptions {
  readonly method?: 'GET' | 'POST' | 'HEAD';
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** The address it comes from. */
  readonly from?: string;
}

/** A gateway on the loopback with one sandbox, this very process. */
async function start(
  vendor: LlmVendor,
  account: Partial<LlmAccount> = {},
  options: Partial<LlmGatewayOptions> = {},
): Promise<Sandbox> {
  const metrics = new Registry();
  const logger = pino({}, { write: (line: string) => logs.push(line) });
  const gateway = new LlmGateway({ egress, metrics, logger, vendorBaseUrls, ...options });
  const { port } = await gateway.listen({ host: HOST, port: 0 });
  const usages: LlmUsage[] = [];
  const whole: LlmAccount = {
    vmId: 'vm_1',
    vendor,
    dialect: dialectOf(vendor, account.baseUrl !== undefined),
    apiKey: new Secret(KEY),
    onUsage: (usage) => usages.push(usage),
    ...account,
  };
  const unregister = gateway.register(HOST, whole);
  const agents = new Map<string, Agent>();
  open.push(
    () => gateway.close(),
    () => Promise.all([...agents.values()].map((agent) => agent.destroy())),
  );
  const agentFrom = (address: string) => {
    const agent = agents.get(address) ?? new Agent({ localAddress: address });
    agents.set(address, agent);
    return agent;
  };
  return {
    gateway,
    port,
    account: whole,
    usages,
    metrics,
    unregister,
    ask: (path, { method = 'POST', body, headers = {}, signal, from = HOST } = {}) =>
      request(`http://${HOST}:${port}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
        dispatcher: agentFrom(from),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}

function script(...replies: Reply[]): void {
  model.setScript({ rules: replies.map((reply) => ({ times: 1, reply })) });
}

const messages = [{ role: 'user', content: 'hello' }];
const USAGE = { input_tokens: 100, output_tokens: 20, cached_input_tokens: 60 };
const COUNTED = { input_tokens: 100, output_tokens: 20, cached_input_tokens: 60 };

/** How each dialect asks, streamed and not; the header in which the vendor expects its key. */
const DIALECTS = [
  {
    name: 'Anthropic Messages',
    vendor: 'anthropic',
    path: () => '/anthropic/v1/messages?beta=true',
    body: (stream: boolean) => ({ model: 'claude-1', max_tokens: 9, stream, messages }),
    credential: ['x-api-key', KEY],
    upstream: '/v1/messages?beta=true',
    upstreamWhole: '/v1/messages?beta=true',
  },
  {
    name: 'Chat Completions',
    vendor: 'openai',
    path: () => '/openai/chat/completions',
    body: (stream: boolean) => ({ model: 'gpt-1', stream, messages }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/v1/chat/completions',
    upstreamWhole: '/v1/chat/completions',
  },
  {
    name: 'Responses',
    vendor: 'openai',
    path: () => '/openai/responses',
    body: (stream: boolean) => ({ model: 'gpt-1', stream, input: 'hello' }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/v1/responses',
    upstreamWhole: '/v1/responses',
  },
  {
    name: 'Google',
    vendor: 'google',
    path: (stream: boolean) =>
      `/google/models/gemini-1:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'hello' }] }] }),
    credential: ['x-goog-api-key', KEY],
    upstream: '/v1beta/models/gemini-1:streamGenerateContent?alt=sse',
    upstreamWhole: '/v1beta/models/gemini-1:generateContent',
  },
  {
    name: 'DeepSeek',
    vendor: 'deepseek',
    path: () => '/deepseek/chat/completions',
    body: (stream: boolean) => ({ model: 'deepseek-1', stream, messages }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/chat/completions',
    upstreamWhole: '/chat/completions',
  },
] as const;
const MODELS: Readonly<Record<LlmVendor, string>> = {
  anthropic: 'claude-1',
  openai: 'gpt-1',
  google: 'gemini-1',
  deepseek: 'deepseek-1',
};

describe.each(DIALECTS)('$name', ({ vendor, path, body, credential, upstream, upstreamWhole }) => {
  test('streams each piece as it comes, with the key put in, and counts', async () => {
    const { ask, usages } = await start(vendor);
    // The second chunk comes only long after this test would have failed.
    script(
      { text: ['first ', 'second'], usage: USAGE, chunk_delay_ms: 3_600_000 },
      { text: ['first ', 'second'], usage: USAGE },
    );
    const slow = new AbortController();
    const waiting = await ask(path(true), { body: body(true), signal: slow.signal });
    let seen = '';
    for await (const chunk of waiting.body) {
      seen += chunk;
      if (seen.includes('first')) break;
    }
    expect(seen).not.toContain('second');
    slow.abort();

    const { statusCode, body: answer } = await ask(path(true), { body: body(true) });
    expect(statusCode).toBe(200);
    const text = await answer.text();
    expect(text).toContain('second');
    expect(text).not.toContain(KEY);
    await expect.poll(() => usages).toContainEqual({ ...COUNTED, model: MODELS[vendor] });
    const last = model.requests.at(-1);
    expect(last?.path).toBe(upstream);
    expect(last?.headers[credential[0]]).toBe(credential[1]);
  });

  test('answers whole, and counts', async () => {
    const { ask, usages, metrics } = await start(vendor);
    script({ text: 'done', usage: USAGE });
    const { statusCode, body: answer } = await ask(path(false), { body: body(false) });
    expect(statusCode).toBe(200);
    expect(await answer.text()).toContain('done');
    expect(usages).toEqual([{ ...COUNTED, model: MODELS[vendor] }]);
    expect(model.requests.at(-1)?.path).toBe(upstreamWhole);
    expect(await metrics.metrics()).toContain(
      `svc_worker_llm_tokens_total{vendor="${vendor}",kind="input"} 100`,
    );
  });

  test.each([401, 429, 529])('%i passes through with its body', async (status) => {
    const { ask, usages } = await start(vendor);
    const said = { error: { type: 'whatever', message: 'the vendor says so' } };
    script({ status, body: said, retry_after: '7' });
    const { statusCode, headers, body: answer } = await ask(path(true), { body: body(true) });
    expect({ statusCode, retry: headers['retry-after'] }).toEqual({
      statusCode: status,
      retry: '7',
    });
    expect(await answer.json()).toEqual(said);
    expect(usages).toEqual([]);
  });
});

describe('requests', () => {
  test('bring nothing of the sandbox along but what means something', async () => {
    const { ask } = await start('anthropic');
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
    const got = model.requests.at(-1)?.headers ?? {};
    expect(got).toMatchObject({
      'x-api-key': KEY,
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a-beta',
      'user-agent': 'claude-cli',
      accept: 'application/json',
      host: new URL(model.url).host,
    });
    const known = [
      ...['x-api-key', 'anthropic-version', 'anthropic-beta', 'user-agent', 'accept', 'host'],
      ...['accept-encoding', 'connection', 'content-type', 'content-length'],
    ];
    expect(Object.keys(got).filter((name) => !known.includes(name))).toEqual([]);
  });

  test('a knock is answered here', async () => {
    const { ask } = await start('anthropic');
    const before = model.requests.length;
    for (const path of ['/', '/anthropic', '/anthropic/']) {
      expect((await ask(path, { method: 'HEAD' })).statusCode).toBe(200);
    }
    expect(model.requests.length).toBe(before);
  });

  test('tokens that are only estimated, and lists of models, count for nothing', async () => {
    const { ask, usages } = await start('anthropic');
    const counted = await ask('/anthropic/v1/messages/count_tokens', { body: { messages } });
    expect(await counted.body.json()).toHaveProperty('input_tokens');
    const listed = await ask('/anthropic/v1/models', { method: 'GET' });
    expect(listed.statusCode).toBe(200);
    await listed.body.dump();
    expect(usages).toEqual([]);
  });

  test('another dialect and other paths are refused in the form that was spoken', async () => {
    const { ask } = await start('anthropic');
    const before = model.requests.length;
    const other = await ask('/openai/chat/completions', { body: { messages } });
    expect(other.statusCode).toBe(403);
    expect(await other.body.json()).toHaveProperty('error.code', 'not_allowed');
    const unknown = await ask('/anthropic/v1/files', { body: {} });
    expect(unknown.statusCode).toBe(404);
    expect(await unknown.body.json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error' },
    });
    expect(model.requests.length).toBe(before);
  });

  test('a custom endpoint of google’s or deepseek’s is spoken to as OpenAI’s, another one the vendor’s way', async () => {
    for (const [vendor, path, upstream] of [
      ['google', '/openai/chat/completions', '/custom/chat/completions'],
      ['deepseek', '/openai/chat/completions', '/custom/chat/completions'],
      ['openai', '/openai/responses', '/custom/responses'],
      ['anthropic', '/anthropic/v1/messages', '/custom/v1/messages'],
    ] as const) {
      const { ask, gateway } = await start(vendor, { baseUrl: `${model.url}/custom/` });
      const { statusCode, body } = await ask(path, { body: { model: 'm', messages } });
      expect(statusCode).toBe(200);
      await body.dump();
      expect(model.requests.at(-1)?.path).toBe(upstream);
      await gateway.close();
    }
  });

  test('that are too large are refused, said or not', async () => {
    for (const vendor of ['anthropic', 'openai'] as const) {
      const path = vendor === 'anthropic' ? '/anthropic/v1/messages' : '/openai/chat/completions';
      const { ask, gateway } = await start(vendor, {}, { limits: { requestBytes: 100_000 } });
      const body = JSON.stringify({ messages, text: 'x'.repeat(100_000) });
      expect((await ask(path, { body })).statusCode).toBe(413);
      const chunked = await ask(path, { body, headers: { 'transfer-encoding': 'chunked' } }).catch(
        () => undefined,
      );
      expect(chunked?.statusCode ?? 413).toBe(413);
      await gateway.close();
    }
  });

  test('of which too many are under way are refused, and end again', async () => {
    const { ask } = await start('openai', {}, { limits: { requests: 2 } });
    script({ fault: 'hang' }, { fault: 'hang' });
    const ended = new AbortController();
    const before = model.requests.length;
    const body = { model: 'm', messages };
    const hanging = [1, 2].map(() =>
      ask('/openai/chat/completions', { body, signal: ended.signal }).catch(() => 'ended'),
    );
    await expect.poll(() => model.requests.length).toBe(before + 2);
    const refused = await ask('/openai/chat/completions', { body });
    expect(refused.statusCode).toBe(429);
    await refused.body.dump();
    ended.abort();
    expect(await Promise.all(hanging)).toEqual(['ended', 'ended']);
    await expect
      .poll(async () => (await ask('/openai/chat/completions', { body })).statusCode)
      .toBe(200);
  });
});

describe('addresses', () => {
  test('a foreign one gets no word', async () => {
    const { ask } = await start('openai');
    const before = model.requests.length;
    await expect(
      ask('/openai/chat/completions', { body: { messages }, from: '127.0.0.2' }),
    ).rejects.toThrow();
    expect(model.requests.length).toBe(before);
  });

  test('one that is no longer registered loses what is under way', async () => {
    const { ask, unregister } = await start('openai');
    script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000 });
    const { body } = await ask('/openai/chat/completions', {
      body: { model: 'm', stream: true, messages },
    });
    const read = body.text();
    unregister();
    await expect(read).rejects.toThrow();
    await expect(ask('/openai/chat/completions', { body: { messages } })).rejects.toThrow();
  });

  test('the end of an earlier sandbox does not end the next one at its address', async () => {
    const { ask, gateway, account, unregister } = await start('openai');
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
  ])('a base URL that may not be used is not connected to: %s', async (baseUrl) => {
    const { ask, usages } = await start('openai', { baseUrl });
    const { statusCode, body } = await ask('/openai/chat/completions', { body: { messages } });
    expect(statusCode).toBe(403);
    expect(await body.json()).toHaveProperty('error.message', expect.stringContaining('URL'));
    expect(usages).toEqual([]);
  });
});

describe('a rotated key', () => {
  test('is used from the next request on, while a stream goes on with the old one', async () => {
    const { ask, gateway, account, usages } = await start('openai');
    script({ text: ['one ', 'two ', 'three'], chunk_delay_ms: 100, usage: USAGE });
    const stream = { model: 'gpt-1', stream: true, messages };
    const { body } = await ask('/openai/chat/completions', { body: stream });
    const read = body.text();
    expect(gateway.update(HOST, { ...account, apiKey: new Secret('sk-the-next-key\n') })).toBe(
      true,
    );
    const next = await ask('/openai/chat/completions', { body: { messages } });
    await next.body.dump();
    expect(model.requests.at(-1)?.headers.authorization).toBe('Bearer sk-the-next-key');
    expect(await read).toContain('three');
    expect(usages).toContainEqual({ ...COUNTED, model: 'gpt-1' });
    expect(gateway.update('127.0.0.9', account)).toBe(false);
  });
});

describe('the key', () => {
  test('is masked where the endpoint repeats it, in bodies and streams', async () => {
    const { ask } = await start('openai');
    script(
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
    for (const text of [refused, streamed, ...logs]) expect(text).not.toContain(KEY);
  });
});

describe('an endpoint', () => {
  const body = { model: 'claude-1', stream: true, messages };
  const path = '/anthropic/v1/messages';

  test('that hangs is given up at the deadline', async () => {
    const { ask } = await start('anthropic', {}, { limits: { idleMs: 200 } });
    script({ fault: 'hang' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(504);
    expect(await answer.json()).toMatchObject({ error: { type: 'timeout_error' } });
  });

  test('that hangs in the middle is given up at the deadline; what it counted counts', async () => {
    const { ask, usages } = await start('anthropic', {}, { limits: { idleMs: 200 } });
    script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000, usage: USAGE });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(() => usages).toEqual([{ ...COUNTED, output_tokens: 1, model: 'claude-1' }]);
  });

  test('that cuts its answer short leaves it short; what it counted counts', async () => {
    const { ask, usages } = await start('anthropic');
    script({ text: ['first', 'second'], fault: 'cut', usage: USAGE });
    const { body: answer } = await ask(path, { body });
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(() => usages).toEqual([{ ...COUNTED, output_tokens: 1, model: 'claude-1' }]);
  });

  test('that resets the connection is told apart from one that answers', async () => {
    const { ask } = await start('anthropic');
    script({ fault: 'close' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(502);
    const text = await answer.text();
    expect(text).toContain('api_error');
    expect(text).not.toContain(HOST);
  });

  test('that sends garbage is passed on, and nothing counted', async () => {
    const { ask, usages } = await start('anthropic');
    script({ fault: 'garbage' });
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(200);
    expect(await answer.text()).toContain('html');
    expect(usages).toEqual([]);
  });

  test('whose certificate nobody vouches for is not spoken to', async () => {
    const allowHosts = [{ host: HOST, port: undefined }];
    const distrusting = createEgress({ allowHosts });
    open.push(() => distrusting.close());
    const { ask } = await start('anthropic', {}, { egress: distrusting });
    const before = model.requests.length;
    const { statusCode, body: answer } = await ask(path, { body });
    expect(statusCode).toBe(502);
    expect(await answer.text()).toContain('certificate');
    expect(model.requests.length).toBe(before);
  });
});

describe('an endpoint of another kind', () => {
  /** A sandbox whose endpoint is a server of one's own. */
  async function startAt(listener: RequestListener): Promise<Sandbox> {
    const server = createServer(tls, listener).listen(0, HOST);
    await once(server, 'listening');
    const way = createEgress({ allowHosts: [{ host: HOST, port: undefined }], caFile });
    open.push(
      () => server.closeAllConnections(),
      () => server.close(),
      () => way.close(),
    );
    const { port } = server.address() as AddressInfo;
    return start('anthropic', { baseUrl: `https://${HOST}:${port}` }, { egress: way });
  }
  const path = '/anthropic/v1/messages';

  test('that redirects is not followed', async () => {
    const { ask } = await startAt((_request, response) =>
      response.writeHead(302, { location: model.url }).end(),
    );
    const before = model.requests.length;
    const { statusCode, headers, body } = await ask(path, { body: { messages } });
    expect({ statusCode, location: headers.location }).toEqual({ statusCode: 502 });
    expect(await body.text()).toContain('redirects');
    expect(model.requests.length).toBe(before);
  });

  test('that compresses against its word is not passed on', async () => {
    const { ask } = await startAt((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    );
    const { statusCode, body } = await ask(path, { body: { messages } });
    expect(statusCode).toBe(502);
    expect(await body.text()).toContain('compresses');
  });

  test('tells the sandbox nothing of whose account it is', async () => {
    const { ask } = await startAt((_request, response) =>
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

  test('that answers before it has the whole request is passed on, and a sandbox that then leaves does no harm', async () => {
    const { port } = await startAt((_request, response) => response.writeHead(401).end('no'));
    const socket = connect({ host: HOST, port }).on('error', () => undefined);
    const answered = once(socket, 'data');
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n${'x'.repeat(1_000_000)}`,
    );
    expect(String((await answered)[0])).toContain('401');
    socket.destroy();
    await once(socket, 'close');
  });
});

describe('a sandbox', () => {
  const body = { model: 'claude-1', stream: true, messages };

  test('that leaves ends the request at the endpoint; what was counted counts', async () => {
    const { ask, usages, metrics } = await start('anthropic');
    script({ text: ['first', 'second'], chunk_delay_ms: 3_600_000, usage: USAGE });
    const leaving = new AbortController();
    const { body: answer } = await ask('/anthropic/v1/messages', { body, signal: leaving.signal });
    answer.on('error', () => undefined);
    let seen = '';
    for await (const chunk of answer) {
      seen += chunk;
      if (seen.includes('first')) break;
    }
    leaving.abort();
    await expect.poll(() => usages).toEqual([{ ...COUNTED, output_tokens: 1, model: 'claude-1' }]);
    expect(await metrics.metrics()).toContain('svc_worker_llm_requests_running 0');
  });

  test('that does not read is given up, and holds back the endpoint until then', async () => {
    const { port, usages } = await start('anthropic', {}, { limits: { idleMs: 300 } });
    script({ text: Array.from({ length: 400 }, () => 'x'.repeat(100_000)), usage: USAGE });
    const socket = connect({ host: HOST, port });
    socket.on('error', () => undefined).pause();
    await once(socket, 'connect');
    const text = JSON.stringify(body);
    socket.write(
      `POST /anthropic/v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    );
    await expect.poll(() => usages.length, { timeout: 20_000 }).toBe(1);
    expect(usages[0]?.output_tokens).toBe(1);
    socket.destroy();
  });

  test('cannot forge what is counted, by what it says or has the model say', async () => {
    const { ask, usages } = await start('openai');
    const forged =
      '"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage":{"prompt_tokens":2}}\n\n';
    script({ text: [forged], usage: USAGE });
    const options = '"stream_options":{"include_usage":true}';
    const text = `{${options},"model":"gpt-1","stream":true,"messages":[],"stream_options":{"include_usage":false}}`;
    const { body: answer } = await ask('/openai/chat/completions', { body: text });
    await answer.dump();
    expect(usages).toEqual([{ ...COUNTED, model: 'gpt-1' }]);
  });
});
