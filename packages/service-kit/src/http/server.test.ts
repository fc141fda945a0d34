import { connect } from 'node:net';
import {
  CancelRequest,
  CreateSandboxRequest,
  ExecRequest,
  FileQuery,
  LogsQuery,
  type Problem,
  ServiceError,
} from '@svc/contract';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpServer, type HttpServer } from './server.ts';

let app: HttpServer;

beforeAll(async () => {
  app = createHttpServer({ logger: pino({ level: 'silent' }), bodyLimit: 10_000 });
  app.get('/things/:id', (request) => ({ id: (request.params as { id: string }).id }));
  app.delete('/things/:id', () => ({ gone: true }));
  app.get('/broken', () => {
    throw new Error('secret detail');
  });
  app.get('/refused', () => {
    throw new ServiceError('no_capacity', undefined, { headers: { 'retry-after': '3' } });
  });
  app.get('/private', () => {
    throw new ServiceError('unauthorized');
  });
  app.post('/create', { schema: { body: CreateSandboxRequest } }, (request) => request.body);
  app.post('/exec', { schema: { body: ExecRequest } }, (request) => request.body);
  app.post('/cancel', { schema: { body: CancelRequest } }, (request) => ({
    body: request.body ?? null,
  }));
  app.get('/logs', { schema: { querystring: LogsQuery } }, (request) => request.query);
  app.get('/files', { schema: { querystring: FileQuery } }, (request) => request.query);
  await app.ready();
});

afterAll(() => app.close());

async function post(url: string, body: string | Buffer, type = 'application/json') {
  return app.inject({ method: 'POST', url, payload: body, headers: { 'content-type': type } });
}

describe('problems', () => {
  it('answers unknown routes with 404, even with a large body', async () => {
    const response = await post('/nowhere', 'x'.repeat(20_000), 'text/plain');
    expect(response.statusCode).toBe(404);
    expect(response.headers['content-type']).toBe('application/problem+json');
    const problem = response.json<Problem>();
    expect(problem).toMatchObject({
      type: '/errors/route_not_found',
      status: 404,
      code: 'route_not_found',
      request_id: response.headers['x-request-id'],
    });
    expect(problem.title).not.toBe('');
    expect(problem.detail).not.toBe('');
  });

  it('answers the wrong method for a known route with 405 and the allowed methods', async () => {
    const response = await app.inject({ method: 'POST', url: '/things/7?x=1' });
    expect(response.statusCode).toBe(405);
    expect(response.headers.allow).toBe('DELETE, GET, HEAD');
    expect(response.json<Problem>().code).toBe('method_not_allowed');
  });

  it('reveals nothing about an unexpected failure', async () => {
    const response = await app.inject('/broken');
    expect(response.statusCode).toBe(500);
    expect(response.body).not.toContain('secret detail');
    expect(response.json<Problem>().code).toBe('internal_error');
  });

  it('answers a ServiceError with its status and headers', async () => {
    const response = await app.inject('/refused');
    expect(response.statusCode).toBe(409);
    expect(response.headers['retry-after']).toBe('3');
  });

  it('names the authentication scheme when credentials are missing', async () => {
    const response = await app.inject('/private');
    expect(response.headers['www-authenticate']).toBe('Bearer');
  });

  it('refuses a malformed URL', async () => {
    const response = await app.inject('/things/%ff');
    expect(response.statusCode).toBe(400);
    expect(response.json<Problem>().code).toBe('invalid_url');
    expect(response.headers['x-request-id']).toBe(response.json<Problem>().request_id);
  });

  it('accepts very long path parameters', async () => {
    const response = await app.inject(`/things/${'a'.repeat(3000)}`);
    expect(response.statusCode).toBe(200);
  });
});

describe('request ids', () => {
  it('echoes a valid one', async () => {
    const response = await app.inject({ url: '/things/1', headers: { 'x-request-id': 'abc-1' } });
    expect(response.headers['x-request-id']).toBe('abc-1');
  });

  it.each(['', 'a b', 'x'.repeat(129), 'a"b'])('replaces %j', async (id) => {
    const response = await app.inject({ url: '/things/1', headers: { 'x-request-id': id } });
    expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('bodies', () => {
  it.each(['{', '{"a":1}}', 'nope', '{"__proto__":{"a":1}}'])('refuses %s', async (body) => {
    const response = await post('/exec', body);
    expect(response.statusCode).toBe(400);
    expect(response.json<Problem>().code).toBe('invalid_json');
  });

  it.each(['{"a":"\xe9"}', '{"a":"\xf0\x9f\x98"}', '{"\xff":1}'])(
    'refuses %j, which is not UTF-8',
    async (text) => {
      const response = await post('/exec', Buffer.from(text, 'latin1'));
      expect(response.json<Problem>()).toMatchObject({ status: 400, code: 'invalid_json' });
    },
  );

  it('refuses other media types and a missing one', async () => {
    for (const headers of [{ 'content-type': 'text/plain' }, {}]) {
      const response = await app.inject({ method: 'POST', url: '/exec', payload: 'x', headers });
      expect(response.statusCode).toBe(415);
      expect(response.json<Problem>().code).toBe('unsupported_media_type');
    }
  });

  it('refuses a body that is too large with 413', async () => {
    const response = await post('/exec', JSON.stringify({ command: 'x'.repeat(20_000) }));
    expect(response.statusCode).toBe(413);
    expect(response.json<Problem>().code).toBe('payload_too_large');
  });

  it('may be absent only if they are optional', async () => {
    const cancel = await app.inject({ method: 'POST', url: '/cancel' });
    expect(cancel.json()).toEqual({ body: null });
    expect((await post('/cancel', '')).json()).toEqual({ body: null });
    const create = await app.inject({ method: 'POST', url: '/create' });
    expect(create.statusCode).toBe(400);
    expect(create.json<Problem>().code).toBe('validation_failed');
  });

  it('keeps unknown fields', async () => {
    const response = await post('/create', '{"template":"standard","other":[1]}');
    expect(response.json()).toEqual({ template: 'standard', other: [1] });
  });

  it.each([
    ['{"template":7}', '/template'],
    ['{"template":null}', '/template'],
    ['{}', '/template'],
    ['[]', ''],
    ['{"template":"standard","vcpu":"2"}', '/vcpu'],
    ['{"template":"standard","vcpu":1.5}', '/vcpu'],
    ['{"template":"standard","memory_mib":1e999}', '/memory_mib'],
    ['{"template":"standard","idle_timeout_seconds":0}', '/idle_timeout_seconds'],
    ['{"template":"standard","workspace_enabled":"true"}', '/workspace_enabled'],
    ['{"template":"standard","env_vars":{"A\\nB":"x"}}', '/env_vars'],
    ['{"template":"standard","env_vars":{"A":1}}', '/env_vars/A'],
    ['{"template":"standard","env_vars":{"A":"\\u0000"}}', '/env_vars/A'],
    ['{"template":"standard","metadata":"x"}', '/metadata'],
  ])('refuses %s', async (body, path) => {
    const response = await post('/create', body);
    expect(response.statusCode).toBe(400);
    const problem = response.json<Problem>();
    expect(problem.code).toBe('validation_failed');
    expect(problem.errors?.[0]?.path).toBe(path);
    expect(problem.errors?.[0]?.message).not.toBe('');
  });

  it.each([
    ['/exec', '{}', 'command_required'],
    ['/exec', '{"command":""}', 'command_required'],
    ['/create', '{"template":"standard","wire_version":3}', 'wire_version_invalid'],
    ['/create', '{"template":"standard","app_json":{"agents":[]}}', 'app_json_invalid'],
    [
      '/create',
      '{"template":"standard","app_json":{"name":"a","capability_sets":[{"name":"b","agents":[{"name":1}]}]}}',
      'app_json_invalid',
    ],
    ['/cancel', '{"reason":"boredom"}', 'unknown_cancel_reason'],
  ])('POST %s with %s answers %s', async (url, body, code) => {
    const response = await post(url, body);
    expect(response.statusCode).toBe(400);
    expect(response.json<Problem>().code).toBe(code);
  });

  it('limits the list of problems', async () => {
    const env = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`V${n}`, n]));
    const response = await post('/create', JSON.stringify({ template: 'x', env_vars: env }));
    expect(response.json<Problem>().errors?.length).toBe(20);
  });
});

describe('query strings', () => {
  it('converts values to the declared type', async () => {
    expect((await app.inject('/logs?lines=7')).json()).toEqual({ lines: 7 });
    expect((await app.inject(`/logs?bytes=${'9'.repeat(400)}`)).json()).toEqual({
      bytes: Number.MAX_SAFE_INTEGER,
    });
  });

  it.each(['lines=0', 'lines=1.5', 'lines=', 'lines=abc', 'lines=0x10', 'lines=1e3', 'lines=-1'])(
    'refuses %s',
    async (query) => {
      const response = await app.inject(`/logs?${query}`);
      expect(response.json<Problem>().code).toBe('log_count_invalid');
    },
  );

  it('refuses an unknown stream, a missing path and a repeated path', async () => {
    const code = async (url: string) => (await app.inject(url)).json<Problem>().code;
    expect(await code('/logs?stream=audio')).toBe('log_stream_unknown');
    expect(await code('/files')).toBe('path_required');
    expect(await code('/files?path=')).toBe('path_required');
    expect(await code('/files?path=/a&path=/b')).toBe('path_required');
  });
});

describe('on the wire', () => {
  it('answers malformed HTTP with a problem', async () => {
    const server = createHttpServer({ logger: pino({ level: 'silent' }) });
    await server.listen({ host: '127.0.0.1', port: 0 });
    const port = portOf(server);
    const answer = await rawRequest(port, 'NOT HTTP AT ALL\r\n\r\n');
    expect(answer).toContain('HTTP/1.1 400');
    expect(answer).toContain('"code":"bad_request"');
    const long = await rawRequest(port, `GET / HTTP/1.1\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`);
    expect(long).toContain('HTTP/1.1 431');
    await server.close();
  });
});

function portOf(server: HttpServer): number {
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP');
  return address.port;
}

function rawRequest(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}
