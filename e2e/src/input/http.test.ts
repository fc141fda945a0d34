import { randomUUID } from 'node:crypto';
import { LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../../test/assertions.ts';
import { useOwnerRequests } from '../../test/owner-requests.ts';

const { send, post } = useOwnerRequests();

describe('bodies', () => {
  test.each(['{', 'nul', '{"template":"standard"', '{"a":1}}', '{"a":NaN}', "{'a':1}"])(
    'rejects malformed JSON with invalid_json: %j',
    async (body) => {
      expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
    },
  );

  test('rejects an empty body', async () => {
    expectProblem(await post('/v1/sandboxes', ''), 'validation_failed');
  });

  test.each([null, true, 1, 'text', []])(
    'rejects %j, which is JSON but not an object',
    async (body) => {
      expectProblem(await post('/v1/sandboxes', JSON.stringify(body)), 'validation_failed');
    },
  );

  test('answers invalid UTF-8 with a client error', async () => {
    const body = Buffer.concat([
      Buffer.from('{"template":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    const answer = await post('/v1/sandboxes', body);
    expect([400, 501]).toContain(answer.status);
  });

  test('ignores a prototype in a body', async () => {
    const body =
      '{"template":"no-such","__proto__":{"template":"standard"},"constructor":{"prototype":{"x":1}}}';
    const { code } = (await post('/v1/sandboxes', body)).json<{ code: string }>();
    expect(['invalid_json', 'unknown_template']).toContain(code);
  });

  test('rejects deep nesting', async () => {
    const depth = 100_000;
    const body = `{"template":"standard","metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
    expectProblem(await post('/v1/sandboxes', body), 'invalid_json');
  });

  test.each(['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json', ''])(
    'rejects the media type %j',
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
  ])('%s rejects a body over 1 MiB, sent or only declared', async (target) => {
    const body = Buffer.alloc(LIMITS.jsonBodyBytes + 1, 0x20);
    expectProblem(await post(target, body), 'payload_too_large');
    const declared = { 'content-length': String(2 ** 40) };
    expectProblem(await post(target, '{', declared), 'payload_too_large');
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
  ])('%s is not a route', async (target) => {
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
  ])('rejects %s %s and names the allowed methods', async (method, target, allowed) => {
    const answer = await send({ method, target });
    expectProblem(answer, 'method_not_allowed');
    expect(answer.headers.allow?.split(', ').sort()).toEqual(allowed);
  });

  test.each(['/v1/sandboxes/%', '/v1/sandboxes/%zz', '/v1/sandboxes/%ff'])(
    'rejects the invalid URL %s',
    async (target) => {
      expectProblem(await send({ target }), 'invalid_url');
    },
  );

  test('rejects headers that are too large', async () => {
    const headers = { 'x-large': 'x'.repeat(100_000) };
    const answer = await send({ target: '/v1/sandboxes', headers });
    expect(answer.status).toBe(431);
    expect(answer.json()).toMatchObject({ code: 'headers_too_large' });
  });

  test('keeps a valid request id of the caller and replaces an invalid one', async () => {
    const id = randomUUID();
    const kept = await send({ target: '/v1/sandboxes/none', headers: { 'x-request-id': id } });
    expect(kept.headers['x-request-id']).toBe(id);
    for (const invalid of ['x'.repeat(1000), 'a b{}<script>']) {
      const answer = await send({
        target: '/v1/sandboxes/none',
        headers: { 'x-request-id': invalid },
      });
      expect(answer.headers['x-request-id']).not.toBe(invalid);
      expectProblem(answer, 'sandbox_not_found');
    }
  });
});
