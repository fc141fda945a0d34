import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { PageServer } from './page-server.ts';

let server: PageServer;
let pages: { socket: WebSocket; nextToken: string }[];

beforeEach(async () => {
  pages = [];
  server = await PageServer.listen({
    port: 0,
    onPage: (socket, nextToken) => pages.push({ socket, nextToken }),
  });
});
afterEach(() => server.close());

const origin = () => new URL(server.link).origin;
const token = () => new URL(server.link).hash.slice(1);
const hostOf = (url: string) => new URL(url).host;

/** The answer to a request, with headers that a browser would not let a page set. */
async function answer(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { hostname, port } = new URL(origin());
  const sent = request({ hostname, port, path, method, headers });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const { statusCode: status, headers: received } = response;
  return { status, headers: received, body: await text(response) };
}

interface Upgrade {
  readonly path?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
}

/** Opens the page's WebSocket, as its own page does unless told otherwise. Returns the status of a refusal, or `open`. */
async function open({ path = '/view', token: given = token(), headers = {} }: Upgrade = {}) {
  const url = `${origin().replace('http', 'ws')}${path}?token=${given}`;
  const socket = new WebSocket(url, { headers: { origin: origin(), ...headers } });
  const opened = new Promise<string | number | undefined>((resolve) => {
    socket.on('open', () => resolve('open'));
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
    socket.on('error', () => undefined);
  });
  return { socket, outcome: await opened };
}

describe('the server of the page', () => {
  test('serves the files of the page to this machine alone', async () => {
    expect(origin()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const page = await answer('/');
    expect(page).toMatchObject({ status: 200, body: expect.stringContaining('<canvas') });
    const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file);
    expect(files).toHaveLength(2);
    for (const file of [...files, '/display.js', '/input.js']) {
      expect(await answer(file ?? '')).toMatchObject({ status: 200 });
    }
    expect(page.body).not.toContain(token());
  });

  test('lets no other page frame, read or run anything of it', async () => {
    const { headers } = await answer('/');
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`connect-src ws://${hostOf(origin())};`);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  test.each(['/page-server.ts', '/../page-server.ts', '/%2e%2e/page-server.ts', '//', '/?'])(
    'has no %s',
    async (path) => {
      expect(await answer(path)).toMatchObject({ status: 404, body: '' });
    },
  );

  test.each([
    ['the name of an attacker', 'attacker.example'],
    ['a name for this machine', 'localhost'],
    ['another port', '127.0.0.1:1'],
  ])('refuses %s as its host', async (_what, host) => {
    expect(await answer('/', { host })).toMatchObject({ status: 403 });
    expect((await open({ headers: { host } })).outcome).toBe(403);
    expect(pages).toEqual([]);
  });

  test('takes no other method', async () => {
    expect(await answer('/', {}, 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET' } });
  });

  test('with a port that is in use is an error that says so', async () => {
    const { port } = new URL(origin());
    const second = PageServer.listen({ port: Number(port), onPage: () => undefined });
    await expect(second).rejects.toMatchObject({ code: 'port_not_available' });
  });
});

describe('the WebSocket of the page', () => {
  test('opens once with the token of the link, and then with the next one', async () => {
    const first = token();
    expect((await open()).outcome).toBe('open');
    expect(token()).not.toBe(first);
    expect(pages[0]?.nextToken).toBe(token());
    expect((await open({ token: first })).outcome).toBe(403);
    expect((await open()).outcome).toBe('open');
    expect(pages).toHaveLength(2);
  });

  test.each<[string, () => Upgrade]>([
    ['without a token', () => ({ token: '' })],
    ['with a guess', () => ({ token: 'A'.repeat(token().length) })],
    ['with a part of the token', () => ({ token: token().slice(0, -1) })],
    ['with a token that is no text of its length', () => ({ token: '%F0%9F%98%80' })],
    ['for a page of another origin', () => ({ headers: { origin: 'https://attacker.example' } })],
    ['for a page of another port', () => ({ headers: { origin: 'http://127.0.0.1:1' } })],
    ['for a page of this machine', () => ({ headers: { origin: 'http://localhost' } })],
    ['for a page without an origin', () => ({ headers: { origin: 'null' } })],
    ['under another path', () => ({ path: '/other' })],
  ])('is refused %s, and the link goes on to work', async (_what, upgrade) => {
    expect((await open(upgrade())).outcome).toBe(403);
    expect(pages).toEqual([]);
    expect((await open()).outcome).toBe('open');
  });

  test('has a secret that nobody guesses', () => {
    expect(Buffer.from(token(), 'base64url').length).toBeGreaterThanOrEqual(16);
  });

  test('ends with a message that is too large', async () => {
    const { socket } = await open();
    pages[0]?.socket.on('error', () => undefined);
    socket.send('x'.repeat(100_000));
    const [code] = await once(socket, 'close');
    expect(code).toBe(1009);
  });

  test('ends with the command, also when the page does not react', async () => {
    const { socket } = await open();
    const paused = await open();
    paused.socket.pause();
    const closed = once(socket, 'close');
    const address = origin();
    await server.close();
    expect((await closed)[0]).toBe(1001);
    await expect(fetch(address)).rejects.toThrow();
    paused.socket.terminate();
    server = await PageServer.listen({ port: 0, onPage: () => undefined });
  });
});
