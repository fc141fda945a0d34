import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Harness } from '../../../test/harness.ts';

const PORT = 8080;
const LIMIT = 4;

let harness: Harness;
let tenant: Awaited<ReturnType<Harness['signUp']>>;
let otherKey: string;
let worker: WorkerDouble;
let vmId: string;
/** What ends after each test. */
const ends: (() => void)[] = [];

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_PORT_CONNECTIONS_PER_TENANT: String(LIMIT) });
  tenant = await harness.signUp();
  otherKey = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  vmId = await harness.create(tenant.key);
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Readable;
  readonly key?: string | undefined;
}

const prefix = (id = vmId, port: number | string = PORT) => `/v1/sandboxes/${id}/ports/${port}`;

/** Sends a request whose path is not normalised. */
async function send(path: string, sent: Sent = {}): Promise<Reply> {
  const { key = 'key' in sent ? undefined : tenant.key } = sent;
  const call = request(harness.plane.url, {
    path,
    method: sent.method ?? 'GET',
    headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...sent.headers },
  });
  if (sent.body instanceof Readable) sent.body.pipe(call);
  else call.end(sent.body);
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  const body = await text(response);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

const codeOf = ({ status, body }: Reply) => [status, JSON.parse(body).code];

async function listening(server: { address(): unknown; close(): unknown }): Promise<number> {
  ends.push(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Serves a port of the sandbox. */
async function guest(listener: RequestListener, port = PORT): Promise<void> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.closeAllConnections());
  worker.ports.servers.set(port, await listening(server));
}

/** A guest that sends these bytes to whoever connects. */
async function rawGuest(answer: (socket: Socket) => void): Promise<void> {
  const server = createTcpServer((socket) => {
    ends.push(() => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.once('data', () => answer(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  worker.ports.servers.set(PORT, await listening(server));
}

/** A guest that answers with what it was asked. */
const echo: RequestListener = (asked, answer) => {
  void text(asked).then((body) => {
    const { method, url, headers } = asked;
    answer.end(JSON.stringify({ method, url, headers, body }));
  });
};

async function link(port = PORT, seconds?: number): Promise<{ url: string; path: string }> {
  const { status, body } = await harness.call('POST', `/v1/sandboxes/${vmId}/links`, {
    key: tenant.key,
    json: { port, ...(seconds === undefined ? {} : { expires_in_seconds: seconds }) },
  });
  expect(status).toBe(201);
  const url = String(body.url);
  return { url, path: new URL(url).pathname };
}

/** Resolves when no connection to a port is open. */
const allClosed = () => vi.waitFor(() => expect(worker.ports.open.size).toBe(0), 10_000);

describe('a request', () => {
  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s reaches the server with its path, query and body',
    async (method) => {
      await guest(echo);
      const body = method === 'OPTIONS' || method === 'GET' ? '' : 'the body';
      const headers = { 'content-type': 'text/x-own', 'content-length': String(body.length) };
      const { status, body: seen } = await send(`${prefix()}/a%2Fb?c=%20d`, {
        method,
        ...(body === '' ? {} : { body, headers }),
      });
      expect(status).toBe(200);
      expect(JSON.parse(seen)).toMatchObject({ method, url: '/a%2Fb?c=%20d', body });
      await allClosed();
    },
  );

  test('HEAD has the headers and no body', async () => {
    await guest((_asked, answer) => answer.setHeader('content-length', 5).end());
    const { status, headers, body } = await send(`${prefix()}/`, { method: 'HEAD' });
    expect([status, headers['content-length'], body]).toEqual([200, '5', '']);
    await allClosed();
  });

  test('streams a body of unknown length, and an answer without end', async () => {
    await guest((asked, answer) => asked.pipe(answer));
    const source = new Readable({ read() {} });
    const call = request(harness.plane.url, {
      path: `${prefix()}/`,
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}` },
    });
    source.pipe(call);
    source.push('one');
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    expect(String((await once(response, 'data'))[0])).toBe('one');
    source.push('two');
    expect(String((await once(response, 'data'))[0])).toBe('two');
    call.destroy();
    response.once('error', () => undefined);
    await allClosed();
  });

  test('carries no credential, no cookie of another, and no claim about the client', async () => {
    await guest(echo);
    const { body } = await send(`${prefix()}/`, {
      headers: {
        connection: 'x-hop, keep-alive',
        'x-hop': '1',
        cookie: `api=secret; ${vmId}.${PORT}.own=1; ${vmId}.9090.other=2; own=3`,
        forwarded: 'for=1.2.3.4',
        'x-forwarded-for': '1.2.3.4',
        'x-forwarded-port': '1',
        'x-real-ip': '1.2.3.4',
        referer: 'https://example.com/secret',
        'proxy-authorization': 'Basic eA==',
        'x-own': 'kept',
      },
    });
    const { headers } = JSON.parse(body);
    expect(headers).toEqual({
      host: `localhost:${PORT}`,
      connection: 'close',
      cookie: 'own=1',
      'x-own': 'kept',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': new URL(harness.plane.url).host.replace('127.0.0.1', 'localhost'),
      'x-forwarded-prefix': prefix(),
      'x-forwarded-proto': 'http',
    });
    expect(body).not.toContain(tenant.key);
  });

  test.each(['/../../x', '/%2e%2e/%2e%2e/x', '//evil.example/x', '/..%2f..%2fx', '/a/./b', '/;x'])(
    'with the path %s stays a path of the same server',
    async (path) => {
      await guest(echo);
      const { status, body } = await send(prefix() + path);
      expect([status, JSON.parse(body).url]).toEqual([200, path]);
    },
  );

  test('for an absolute URL goes nowhere', async () => {
    await guest(echo);
    const reply = await send(`http://evil.example${prefix()}/`);
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(worker.ports.open.size).toBe(0);
  });

  test.each([
    ['content-length: 5\r\ntransfer-encoding: chunked', '0\r\n\r\nGET /x HTTP/1.1\r\n\r\n'],
    ['transfer-encoding: chunked\r\ntransfer-encoding: identity', '0\r\n\r\n'],
    ['content-length: 5\r\ncontent-length: 6', 'hello!'],
  ])('with ambiguous framing %j is refused', async (framing, body) => {
    const seen = vi.fn<RequestListener>((_asked, answer) => void answer.end());
    await guest(seen);
    const { port } = new URL(harness.plane.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(
      `POST ${prefix()}/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tenant.key}\r\n${framing}\r\n\r\n${body}`,
    );
    expect(await text(socket)).toMatch(/^HTTP\/1.1 400 /);
    await allClosed();
    expect(seen.mock.calls.filter(([{ complete }]) => complete)).toEqual([]);
  });

  test.each(['0', '65536', '99999999', '-1', '08', '8080x', '%20', '22', '7000', '7100'])(
    'for port %s is refused',
    async (port) => {
      worker.ports.servers.set(Number(port), 1);
      expect(codeOf(await send(`${prefix(vmId, port)}/`))).toEqual([400, 'port_not_allowed']);
    },
  );

  test('to a port without a server is an error of its own', async () => {
    expect(codeOf(await send(`${prefix(vmId, 9)}/`))).toEqual([502, 'port_unreachable']);
  });

  test('to a paused sandbox does not resume it', async () => {
    await guest(echo);
    await harness.call('POST', `/v1/sandboxes/${vmId}/pause`, { key: tenant.key });
    expect(codeOf(await send(`${prefix()}/`))).toEqual([409, 'sandbox_not_running']);
    expect(worker.sandboxes.get(vmId)?.state).toBe('paused');
  });

  test('beyond the connections of a tenant is refused until one of them ends', async () => {
    const held: ServerResponse[] = [];
    await guest((_asked, answer) => void held.push(answer));
    const calls = Array.from({ length: LIMIT }, () => send(`${prefix()}/`));
    await vi.waitFor(() => expect(held.length).toBe(LIMIT), 10_000);
    const refused = await send(`${prefix()}/`);
    expect(codeOf(refused)).toEqual([429, 'too_many_port_connections']);
    expect(refused.headers['retry-after']).toBe('1');
    for (const answer of held) answer.end();
    await Promise.all(calls);
    await vi.waitFor(async () => {
      const call = send(`${prefix()}/`);
      held.at(-1)?.end();
      await vi.waitFor(() => expect(held.length).toBeGreaterThan(LIMIT));
      held.at(-1)?.end();
      expect((await call).status).toBe(200);
    }, 10_000);
  });
});

describe('a credential', () => {
  test('is needed, and must be that of the owner', async () => {
    await guest(echo);
    expect(codeOf(await send(`${prefix()}/`, { key: undefined }))).toEqual([401, 'unauthorized']);
    expect(codeOf(await send(`${prefix()}/`, { key: 'svc_x' }))).toEqual([401, 'unauthorized']);
    expect(codeOf(await send(`${prefix()}/`, { key: tenant.token }))).toEqual([
      401,
      'unauthorized',
    ]);
    expect(codeOf(await send(`${prefix()}/`, { key: otherKey }))).toEqual([
      404,
      'sandbox_not_found',
    ]);
  });

  test('of a link opens its port, with relative paths below it', async () => {
    await guest(echo);
    const { path } = await link();
    const { status, body } = await send(`${path}a/b?c`, { key: undefined });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ url: '/a/b?c' });
    expect(body).not.toContain('authorization');
    expect((await send(path.slice(0, -1), { key: undefined })).status).toBe(200);
  });

  test('of a link opens neither another port, nor another sandbox, nor another route', async () => {
    await guest(echo);
    await guest(echo, 9090);
    const { path } = await link();
    const token = path.split('/').at(-2) ?? '';
    const other = await harness.create(tenant.key);
    for (const target of [
      `${prefix(vmId, 9090)}/${token}/`,
      `${prefix(other)}/${token}/`,
      `${prefix()}/x/${token}/`,
      `${prefix()}/${token.slice(1)}/`,
      `${prefix()}/${token.slice(0, -2)}/`,
      `${prefix()}/~${token.split('.')[0]}.${token.split('.')[1]}.${'A'.repeat(43)}/`,
    ]) {
      expect(codeOf(await send(target, { key: undefined })), target).toEqual([401, 'unauthorized']);
    }
    const bearer = await send('/v1/sandboxes', { key: token.slice(1) });
    expect(bearer.status).toBe(401);
  });

  test('of a link that has expired opens nothing', async () => {
    await guest(echo);
    const { path } = await link(PORT, 1);
    await vi.waitFor(async () => {
      expect(codeOf(await send(path, { key: undefined }))).toEqual([401, 'unauthorized']);
    }, 10_000);
  });

  test('of a link ends with the API key that made it', async () => {
    await guest(echo);
    const made = await harness.call('POST', '/v1/tenants/me/api-keys', { key: tenant.key });
    const { body } = await harness.call('POST', `/v1/sandboxes/${vmId}/links`, {
      key: String(made.body.api_key),
      json: { port: PORT },
    });
    const path = new URL(String(body.url)).pathname;
    expect((await send(path, { key: undefined })).status).toBe(200);
    await harness.call('DELETE', `/v1/tenants/me/api-keys/${made.body.key_id}`, {
      key: tenant.key,
    });
    expect(codeOf(await send(path, { key: undefined }))).toEqual([401, 'unauthorized']);
  });

  test('of a link is recorded without its secret, and is in no log', async () => {
    await guest(echo);
    const { path } = await link();
    await send(path, { key: undefined });
    await send(`${path}%`, { key: undefined });
    const audit = await harness.call('GET', '/v1/audit', { key: tenant.token });
    const [entry] = audit.body.entries as Record<string, unknown>[];
    expect(entry).toMatchObject({
      event: 'port_link_created',
      details: { vm_id: vmId, port: PORT, expires_at: expect.any(String) },
    });
    const signature = path.split('.').at(-1)?.slice(0, -1) ?? '';
    expect(signature.length).toBeGreaterThan(30);
    expect(audit.text + harness.logLines.join('')).not.toContain(signature);
  });

  test.each([
    [{ port: 22 }, 400, 'port_not_allowed'],
    [{ port: 0 }, 400, 'port_not_allowed'],
    [{ port: '80' }, 400, 'validation_failed'],
    [{ port: 80, expires_in_seconds: 3601 }, 400, 'validation_failed'],
  ])('of a link is refused for %j', async (json, status, code) => {
    const path = `/v1/sandboxes/${vmId}/links`;
    expect(await harness.call('POST', path, { key: tenant.key, json })).toMatchObject({
      status,
      body: { code },
    });
  });
});

describe('a response', () => {
  test('is confined to an origin of its own, whatever headers the guest sends', async () => {
    await guest((_asked, answer) => {
      answer.writeHead(200, {
        'content-type': 'text/html',
        'content-security-policy': "script-src 'self', sandbox allow-same-origin",
        'access-control-allow-origin': 'https://evil.example',
        'access-control-allow-credentials': 'true',
        'accept-ch': 'Sec-CH-UA-Model',
        'attribution-reporting-register-source': '{}',
        'clear-site-data': '"*"',
        'secure-session-registration': '(ES256);path="/"',
        'use-as-dictionary': 'match="/*"',
        'strict-transport-security': 'max-age=0',
        'service-worker-allowed': '/',
        'www-authenticate': 'Basic realm="API"',
        'referrer-policy': 'unsafe-url',
        'cache-control': 'public, max-age=9999',
        'cross-origin-resource-policy': 'same-origin',
        'x-request-id': 'forged',
        refresh: '0; url=/v1/sandboxes',
        'alt-svc': 'h3=":1"',
        nel: '{}',
        'x-hop': '1',
        connection: 'x-hop',
        'x-own': 'kept',
      });
      answer.end('<p>');
    });
    const { headers, body } = await send(`${prefix()}/`);
    expect(body).toBe('<p>');
    const { date, 'x-request-id': id, connection, 'keep-alive': alive, ...rest } = headers;
    expect([date, connection, alive].every((value) => typeof value === 'string')).toBe(true);
    expect(id).not.toBe('forged');
    expect(rest).toEqual({
      'content-type': 'text/html',
      'content-security-policy': expect.stringMatching(
        /^sandbox (?!.*allow-same-origin.*,)[a-z -]+, script-src 'self', sandbox allow-same-origin$/,
      ),
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'transfer-encoding': 'chunked',
      'x-own': 'kept',
    });
  });

  test('by a link can be read by its own page, and by no page with credentials', async () => {
    await guest(echo);
    const { path } = await link();
    const { headers } = await send(path, { key: undefined, headers: { origin: 'null' } });
    expect(headers['access-control-allow-origin']).toBe('*');
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    const preflight = await send(path, {
      key: undefined,
      method: 'OPTIONS',
      headers: {
        origin: 'null',
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'content-type',
    });
  });

  test('sets cookies for its own path under its own name only, and gets them back', async () => {
    await guest((asked, answer) => {
      answer.setHeader('set-cookie', [
        'a=1; Domain=localhost; Path=/; HttpOnly',
        `__Host-b=2; Path=/v1; SameSite=Strict`,
        'svc_key=3; path=/../..; max-age=5',
        'nameless',
        '=x',
      ]);
      answer.end(asked.headers.cookie ?? '');
    });
    const own = `${vmId}.${PORT}.`;
    const { headers } = await send(`${prefix()}/`);
    expect(headers['set-cookie']).toEqual([
      `${own}a=1; HttpOnly; Path=${prefix()}/`,
      `${own}__Host-b=2; Path=${prefix()}/v1`,
      `${own}svc_key=3; max-age=5; Path=${prefix()}/../..`,
    ]);
    const { body } = await send(`${prefix()}/`, { headers: { cookie: `${own}a=1; b=2` } });
    expect(body).toBe('a=1');
  });

  test('redirects to its own pages or elsewhere, never to the API', async () => {
    const { origin } = new URL(harness.plane.url.replace('127.0.0.1', 'localhost'));
    for (const [location, expected] of [
      ['/login?a#b', `${prefix()}/login?a#b`],
      ['next', `${prefix()}/dir/next`],
      ['../../../../../../tenants/me/api-keys', `${prefix()}/tenants/me/api-keys`],
      ['/%2e%2e/%2e%2e/x', `${prefix()}/x`],
      ['/a\\..\\..\\x', `${prefix()}/x`],
      [`http://localhost:${PORT}/x`, `${prefix()}/x`],
      [`http://127.0.0.1:${PORT}/x`, `${prefix()}/x`],
      [`${origin}/v1/tenants/me/api-keys`, `${prefix()}/v1/tenants/me/api-keys`],
      [`${origin}${prefix()}/x`, `${prefix()}/x`],
      [`${origin}${prefix()}/../../../x`, `${prefix()}/v1/sandboxes/x`],
      ['https://example.com/x', 'https://example.com/x'],
      ['//example.com/x', 'http://example.com/x'],
      ['javascript:alert(1)', undefined],
    ] as const) {
      await guest((_asked, answer) => void answer.writeHead(307, { location }).end());
      const { status, headers } = await send(`${prefix()}/dir/page`, { method: 'DELETE' });
      expect([status, headers.location], location).toEqual([307, expected]);
    }
  });

  test.each<[string, (socket: Socket) => void]>([
    ['is not HTTP', (socket) => void socket.end('hello\r\n\r\n')],
    [
      'has two lengths',
      (socket) =>
        void socket.end(
          'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
        ),
    ],
    ['is empty', (socket) => void socket.end()],
    [
      'has a status of no kind',
      (socket) => void socket.end('HTTP/1.1 999 No\r\ncontent-length: 0\r\n\r\n'),
    ],
    [
      'switches to another protocol unasked',
      (socket) =>
        void socket.write('HTTP/1.1 101 Sure\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    ],
    [
      'has headers without end',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        const more = () => {
          while (!socket.destroyed && socket.write(`x-${'a'.repeat(999)}: b\r\n`));
        };
        socket.on('drain', more);
        more();
      },
    ],
  ])('that %s is a 502', async (_what, answer) => {
    await rawGuest(answer);
    expect(codeOf(await send(`${prefix()}/`))).toEqual([502, 'port_bad_response']);
    await allClosed();
  });

  test('that breaks off ends the connection of its client', async () => {
    await rawGuest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
      socket.end();
    });
    await expect(send(`${prefix()}/`)).rejects.toThrow();
    await allClosed();
  });

  test('without end stops when its client leaves, and waits for one that does not read', async () => {
    let written = 0;
    const block = Buffer.alloc(65_536);
    await guest((_asked, answer) => {
      const more = () => {
        while (!answer.destroyed && answer.write(block)) written += block.length;
      };
      answer.on('drain', more);
      more();
    });
    const call = request(harness.plane.url, {
      path: `${prefix()}/`,
      headers: { authorization: `Bearer ${tenant.key}` },
    });
    call.end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    // The buffers on the way fill up, then nothing more is taken from the guest.
    let before = -1;
    await vi.waitFor(
      () => {
        const still = written === before;
        before = written;
        expect(still).toBe(true);
      },
      { timeout: 20_000, interval: 500 },
    );
    expect(written).toBeLessThan(64 * 1024 * 1024);
    response.once('error', () => undefined);
    call.destroy();
    await allClosed();
  });

  test('of a browser announces its WebSockets at their public address', async () => {
    const inside = `ws://localhost:${PORT}/devtools/browser/1`;
    await guest((_asked, answer) => {
      const page = JSON.stringify({ Browser: 'C', webSocketDebuggerUrl: inside, other: inside });
      answer.writeHead(200, {
        'content-type': 'application/json; charset=UTF-8',
        'content-length': page.length,
      });
      answer.end(page);
    });
    const { url, path } = await link();
    for (const page of ['json/version', 'json/version/', 'json/list']) {
      const { body, headers } = await send(path + page, { key: undefined });
      expect(Number(headers['content-length'])).toBe(body.length);
      expect(JSON.parse(body)).toEqual({
        Browser: 'C',
        webSocketDebuggerUrl: `${url.replace('http:', 'ws:')}devtools/browser/1`,
        other: inside,
      });
    }
    expect((await send(`${path}elsewhere`, { key: undefined })).body).toContain(inside);
  });
});

describe('a WebSocket', () => {
  /** A server in the guest that answers each message with itself. */
  async function echoSockets(seen: IncomingMessage[] = []): Promise<WebSocketServer> {
    const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(sockets, 'listening');
    ends.push(() => {
      for (const client of sockets.clients) client.terminate();
    });
    sockets.on('connection', (socket, asked) => {
      seen.push(asked);
      socket.on('error', () => undefined);
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    });
    worker.ports.servers.set(PORT, await listening(sockets));
    return sockets;
  }

  function open(path: string, headers: Record<string, string> = {}): WebSocket {
    const socket = new WebSocket(harness.plane.url.replace('http', 'ws') + path, { headers });
    socket.on('error', () => undefined);
    ends.push(() => socket.terminate());
    return socket;
  }

  async function refusal(socket: WebSocket): Promise<number | undefined> {
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    return response.statusCode;
  }

  test('passes both ways, by the key and by a link', async () => {
    const seen: IncomingMessage[] = [];
    await echoSockets(seen);
    const authorization = `Bearer ${tenant.key}`;
    const { path } = await link();
    for (const [target, headers] of [
      [`${prefix()}/a?b`, { authorization }],
      [`${path}a?b`, undefined],
    ] as const) {
      const socket = open(target, headers);
      await once(socket, 'open');
      for (const message of ['hello', 'x'.repeat(300_000)]) {
        socket.send(message);
        expect(String((await once(socket, 'message'))[0])).toBe(message);
      }
      socket.close(4000, 'done');
      expect((await once(socket, 'close'))[0]).toBe(4000);
    }
    expect(seen.map(({ url }) => url)).toEqual(['/a?b', '/a?b']);
    expect(JSON.stringify(seen.map(({ headers }) => headers))).not.toContain(tenant.key);
    await allClosed();
  });

  test('is refused as a request is', async () => {
    await echoSockets();
    expect(await refusal(open(`${prefix()}/`))).toBe(401);
    expect(await refusal(open(`${prefix()}/`, { authorization: `Bearer ${otherKey}` }))).toBe(404);
    const authorization = `Bearer ${tenant.key}`;
    expect(await refusal(open(`${prefix(vmId, 22)}/`, { authorization }))).toBe(400);
    expect(await refusal(open(`${prefix(vmId, 9)}/`, { authorization }))).toBe(502);
    expect(await refusal(open('/v1/sandboxes', { authorization }))).toBe(404);
    await guest((_asked, answer) => void answer.writeHead(403).end('no'));
    expect(await refusal(open(`${prefix()}/`, { authorization }))).toBe(403);
    await allClosed();
  });

  test('is not what a client of HTTP/2 asks for, which continues with HTTP/1.1', async () => {
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': '' };
    expect((await send('/healthz', { headers })).status).toBe(200);
  });

  test('ends for both when either side ends, or the worker cuts it', async () => {
    const sockets = await echoSockets();
    const { path } = await link();
    const first = open(path);
    await once(first, 'open');
    first.terminate();
    await vi.waitFor(() => expect(sockets.clients.size).toBe(0), 10_000);
    const second = open(path);
    await once(second, 'open');
    for (const connection of worker.ports.open) connection.destroy();
    await once(second, 'close');
    await allClosed();
  });

  test('ends when the control plane closes', async () => {
    await echoSockets();
    const { path } = await link();
    const plane = await harness.startAnother();
    const socket = new WebSocket(plane.url.replace('http', 'ws') + path);
    socket.on('error', () => undefined);
    await once(socket, 'open');
    const closed = once(socket, 'close');
    await plane.close();
    await closed;
    await allClosed();
  });
});
