import { randomUUID } from 'node:crypto';
import { LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { useOwnerRequests } from '../../test/owner-requests.ts';

const { send, post } = useOwnerRequests();

describe('bodies', () => {
  test.each(['{', 'nul', '{"template":"standard"', '{"a":1}}', '{"a":NaN}', "{'a':1}"])(
    'malformed JSON is invalid_json: %j',
    async (body) => {
      expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
    },
  );

  test('no body is no request', async () => {
    expectProblem(await post('/v1/sandboxes', ''), 'validation_failed');
  });

  test.each([null, true, 1, 'text', []])('%j is valid JSON and no request', async (body) => {
    expectProblem(await post('/v1/sandboxes', JSON.stringify(body)), 'validation_failed');
  });

  test('bytes that are no UTF-8 are refused or read as text, never more', async () => {
    const body = Buffer.concat([
      Buffer.from('{"template":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    const answer = await post('/v1/sandboxes', body);
    expect([400, 501]).toContain(answer.status);
  });

  test('a prototype in a body is only a field', async () => {
    const body =
      '{"template":"no-such","__proto__":{"template":"standard"},"constructor":{"prototype":{"x":1}}}';
    const { code } = (await post('/v1/sandboxes', body)).json<{ code: string }>();
    expect(['invalid_json', 'unknown_template']).toContain(code);
  });

  test('nesting without end does no harm', async () => {
    const depth = 100_000;
    const body = `{"template":"standard","metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
    expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
  });

  test.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json', ''])(
    'the media type %j is unsupported',
    async (type) => {
      const headers = { 'content-type': type };
      expectProblem(
        await post('/v1/sandboxes', '{"template":"standard"}', headers),
        'unsupported_media_type',
      );
    },
  );

  test.each([
    '/v1/sandboxes',
    '/v1/sandboxes/{id}/exec',
    '/v1/sandboxes/{id}/cancel',
    '/v1/tenants',
  ])('beyond 1 MiB is too large for %s, told or not', async (target) => {
    const body = Buffer.alloc(LIMITS.jsonBodyBytes + 1, 0x20);
    expectProblem(await post(target, body), 'payload_too_large');
    const claimed = { 'content-length': String(2 ** 40) };
    expectProblem(await post(target, '{', claimed), 'payload_too_large');
  });
});

describe('addresses', () => {
  test.each([
    '/',
    '/v1',
    '/v2/sandboxes',
    '/v1/sandbox',
    '/v1/sandboxes/x/ws',
    '/v1/sandboxes/x/exec/y',
    '//v1/sandboxes',
    '/V1/sandboxes',
    '/v1/sandboxes/../tenants/me',
  ])('%s is no route', async (target) => {
    expectProblem(await send({ target }), 'route_not_found');
  });

  test.each([
    ['PUT', '/v1/sandboxes', ['GET', 'HEAD', 'POST']],
    ['PATCH', '/v1/sandboxes/{id}', ['DELETE', 'GET', 'HEAD']],
    ['GET', '/v1/sandboxes/{id}/exec', ['POST']],
    ['DELETE', '/v1/sandboxes/{id}/files', ['GET', 'POST']],
    ['GET', '/v1/sandboxes/{id}/cancel', ['POST']],
    ['POST', '/v1/sandboxes/{id}/logs', ['GET', 'HEAD']],
    ['GET', '/v1/tenants', ['POST']],
  ])('%s %s is not allowed, and what is is named', async (method, target, allowed) => {
    const answer = await send({ method, target });
    expectProblem(answer, 'method_not_allowed');
    expect(answer.headers.allow?.split(', ').sort()).toEqual(allowed);
  });

  test.each(['/v1/sandboxes/%', '/v1/sandboxes/%zz', '/v1/sandboxes/%ff'])(
    '%s is no URL',
    async (target) => {
      expectProblem(await send({ target }), 'invalid_url');
    },
  );

  test('a header section that is too large is refused', async () => {
    const headers = { 'x-large': 'x'.repeat(100_000) };
    const answer = await send({ target: '/v1/sandboxes', headers });
    expect(answer.status).toBe(431);
    expect(answer.json()).toMatchObject({ code: 'headers_too_large' });
  });

  test('the caller’s request id is kept when it is sane, and replaced when not', async () => {
    const id = randomUUID();
    const kept = await send({ target: '/v1/sandboxes/none', headers: { 'x-request-id': id } });
    expect(kept.headers['x-request-id']).toBe(id);
    for (const insane of ['x'.repeat(1000), 'a b{}<script>']) {
      const answer = await send({
        target: '/v1/sandboxes/none',
        headers: { 'x-request-id': insane },
      });
      expect(answer.headers['x-request-id']).not.toBe(insane);
      expectProblem(answer, 'sandbox_not_found');
    }
  });
});
