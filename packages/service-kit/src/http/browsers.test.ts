import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../logging/index.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const APP = 'https://app.example.com';
const PREFLIGHT = { 'access-control-request-method': 'POST' };

let app: HttpServer;

function serve(origins: readonly string[], secure = false): void {
  app = createHttpServer({
    logger: createLogger({ level: 'silent' }),
    browsers: { origins, secure },
  });
  app.get('/thing', async () => ({ ok: true }));
  app.get('/page', async (_request, reply) =>
    reply.header('content-security-policy', "default-src 'self'").type('text/html').send('<p>'),
  );
}

beforeEach(() => serve([APP]));
afterEach(() => app.close());

describe('security headers', () => {
  test.each([['/thing'], ['/nothing']])(
    'are on every response, such as that of %s',
    async (url) => {
      const { headers } = await app.inject({ url });
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'cache-control': 'no-store',
      });
      expect(headers).not.toHaveProperty('strict-transport-security');
    },
  );

  test('can be replaced by a route, and require HTTPS only of an HTTPS server', async () => {
    serve([], true);
    const { headers } = await app.inject({ url: '/page' });
    expect(headers['content-security-policy']).toBe("default-src 'self'");
    expect(headers['strict-transport-security']).toBe('max-age=31536000');
  });
});

describe('other origins', () => {
  const options = (origin: string) =>
    app.inject({ method: 'OPTIONS', url: '/thing', headers: { ...PREFLIGHT, origin } });

  test('get no CORS headers and no preflight response by default', async () => {
    serve([]);
    const { headers } = await app.inject({ url: '/thing', headers: { origin: APP } });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
    expect((await options(APP)).statusCode).toBe(405);
  });

  test('that are configured may read responses and refusals, and get a preflight response', async () => {
    for (const url of ['/thing', '/nothing']) {
      const { headers } = await app.inject({ url, headers: { origin: APP } });
      expect(headers['access-control-allow-origin']).toBe(APP);
      expect(headers['access-control-expose-headers']).toContain('x-request-id');
      expect(headers).not.toHaveProperty('access-control-allow-credentials');
    }
    const preflight = await options(APP);
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toHaveProperty('x-request-id');
    expect(preflight.headers['access-control-allow-headers']).toContain('authorization');
    expect(preflight.headers['access-control-allow-methods']).toContain('PUT');
  });

  test.each([
    ['null'],
    ['https://evil.example.com'],
    ['https://app.example.com.evil.example'],
    ['http://app.example.com'],
    ['https://app.example.com:444'],
  ])('do not include %s', async (origin) => {
    const { headers } = await app.inject({ url: '/thing', headers: { origin } });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
    expect(headers.vary).toContain('origin');
    expect((await options(origin)).statusCode).toBe(405);
  });
});
