import { describe, expect, test, vi } from 'vitest';
import { type Answer, json, scriptedFetch, streamOf } from '../test/scripted-fetch.ts';
import { SvcClient } from './client.ts';
import { SvcError } from './errors.ts';
import type { SandboxList } from './resources/sandboxes.ts';

const CREATED = { vm_id: 'vm_1', state: 'running', host_port: 4022 };
const PROBLEM = {
  type: '/errors/no_capacity',
  title: 'No capacity',
  status: 409,
  detail: 'Try again later.',
  code: 'no_capacity',
  request_id: 'req-9',
};

function clientOf(...answers: Answer[]) {
  const { fetch, seen } = scriptedFetch(...answers);
  return { client: new SvcClient({ baseUrl: 'https://svc.test/', apiKey: 'svc_k', fetch }), seen };
}

const refused = () =>
  new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:8443') });

describe('requests', () => {
  test('carry the credential, the body and a new idempotency key each', async () => {
    const { client, seen } = clientOf(json(201, CREATED));
    expect(await client.sandboxes.create({ template: 'standard' })).toEqual(CREATED);
    await client.sandboxes.create({ template: 'standard' });
    const [first, second] = seen;
    expect(first?.method).toBe('POST');
    expect(first?.url.href).toBe('https://svc.test/v1/sandboxes');
    expect(first?.headers.get('authorization')).toBe('Bearer svc_k');
    expect(first?.body).toBe('{"template":"standard"}');
    expect(first?.headers.get('idempotency-key')).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.headers.get('idempotency-key')).not.toBe(first?.headers.get('idempotency-key'));
  });

  test('escape ids and omit absent query values', async () => {
    const { client, seen } = clientOf(json(200, { content: '', truncated: false, total_bytes: 0 }));
    await client.sandboxes.logs('vm_/../x', { lines: 5 });
    expect(seen[0]?.url.href).toBe('https://svc.test/v1/sandboxes/vm_%2F..%2Fx/logs?lines=5');
  });

  test('carry the trace context of their caller, asked for each', async () => {
    const { fetch, seen } = scriptedFetch(json(200, []));
    let calls = 0;
    const traceparent = () => {
      calls += 1;
      return calls === 1 ? 'of the first' : undefined;
    };
    const client = new SvcClient({ baseUrl: 'https://svc.test', fetch, traceparent });
    await client.sandboxes.list();
    await client.sandboxes.list();
    expect(seen.map(({ headers }) => headers.get('traceparent'))).toEqual(['of the first', null]);
  });

  test('reject an invalid base URL', () => {
    expect(() => new SvcClient({ baseUrl: 'localhost:8443' })).toThrow(/baseUrl/);
  });

  test('accept complete and partial lists', async () => {
    const { client } = clientOf(json(200, []), json(200, { sandboxes: [CREATED], partial: true }));
    expect(await client.sandboxes.list()).toEqual({ sandboxes: [], partial: false });
    expect(await client.sandboxes.list()).toEqual({ sandboxes: [CREATED], partial: true });
  });

  test('ask for page after page of a list until one is not full', async () => {
    const page = (...ids: string[]) => ids.map((vm_id) => ({ ...CREATED, vm_id }));
    const { client, seen } = clientOf(
      json(200, page('vm_1', 'vm_2')),
      json(200, { sandboxes: page('vm_3', 'vm_4'), partial: true }),
      json(200, page('vm_5')),
    );
    const pages: SandboxList[] = [];
    for await (const list of client.sandboxes.pages(2)) pages.push(list);
    expect(pages.map(({ sandboxes }) => sandboxes.length)).toEqual([2, 2, 1]);
    expect(pages.map(({ partial }) => partial)).toEqual([false, true, false]);
    expect(seen.map(({ url }) => new URL(url).search)).toEqual([
      '?limit=2',
      '?limit=2&after=vm_2',
      '?limit=2&after=vm_4',
    ]);
  });
});

describe('failures', () => {
  test('of the service contain every member of the problem', async () => {
    const errors = [{ path: '/vcpu', message: 'must be <= 8' }];
    const { client } = clientOf(json(409, { ...PROBLEM, errors }, { 'retry-after': '7' }));
    const error = await client.sandboxes.create({ template: 'standard' }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(SvcError);
    expect(error).toMatchObject({
      code: 'no_capacity',
      status: 409,
      detail: 'Try again later.',
      requestId: 'req-9',
      errors,
      retryAfterSeconds: 7,
    });
  });

  test('without a problem body are unexpected_status', async () => {
    const { client } = clientOf(new Response('<html>', { status: 404 }));
    await expect(client.sandboxes.get('vm_1')).rejects.toMatchObject({
      code: 'unexpected_status',
      status: 404,
    });
  });

  test('include a success that is not JSON, as invalid_response', async () => {
    const { client } = clientOf(new Response('<html>'));
    await expect(client.sandboxes.get('vm_1')).rejects.toMatchObject({ code: 'invalid_response' });
  });

  test('of the connection state the cause', async () => {
    const { client } = clientOf(refused());
    await expect(client.sandboxes.exec('vm_1', 'true')).rejects.toMatchObject({
      code: 'connection_failed',
      status: 0,
      detail: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('are a timeout after the deadline, and the reason of the signal after an abort', async () => {
    const hang = ({ signal }: { signal: AbortSignal }) =>
      new Promise<Response>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const { client } = clientOf(hang);
    await expect(client.sandboxes.get('vm_1', { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'timeout',
    });
    const reason = new Error('changed my mind');
    const stop = new AbortController();
    const call = client.sandboxes.exec('vm_1', 'sleep 9', { signal: stop.signal });
    stop.abort(reason);
    await expect(call).rejects.toBe(reason);
  });
});

describe('retries', () => {
  test('repeat a create with the same idempotency key', async () => {
    const { client, seen } = clientOf(refused(), json(503, PROBLEM), json(201, CREATED));
    expect(await client.sandboxes.create({ template: 'standard' })).toEqual(CREATED);
    expect(new Set(seen.map((request) => request.headers.get('idempotency-key'))).size).toBe(1);
    expect(seen).toHaveLength(3);
  });

  test('never repeat a command', async () => {
    const { client, seen } = clientOf(json(503, PROBLEM));
    await expect(client.sandboxes.exec('vm_1', 'true')).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(1);
  });

  test('do not repeat a permanent failure', async () => {
    const { client, seen } = clientOf(json(409, PROBLEM));
    await expect(client.sandboxes.create({ template: 'standard' })).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(1);
  });

  test('stop after the configured number', async () => {
    const { fetch, seen } = scriptedFetch(json(502, PROBLEM));
    const client = new SvcClient({ baseUrl: 'https://svc.test', fetch, maxRetries: 1 });
    await expect(client.sandboxes.get('vm_1')).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(2);
  });

  test('stop immediately when the service asks for a long wait', async () => {
    const { client, seen } = clientOf(json(503, PROBLEM, { 'retry-after': '3600' }));
    await expect(client.sandboxes.list()).rejects.toMatchObject({ retryAfterSeconds: 3600 });
    expect(seen).toHaveLength(1);
  });
});

describe('a 429 that says when to try again', () => {
  const DONE = {
    output: '',
    stdout: '',
    stderr: '',
    exit_code: 0,
    duration_ms: 1,
    truncated: false,
  };
  const busy = () => json(429, { ...PROBLEM, code: 'too_many_execs' }, { 'retry-after': '0' });

  test('is waited for, also by a command, because it did not run', async () => {
    const { client, seen } = clientOf(busy(), json(200, DONE));
    expect(await client.sandboxes.exec('vm_1', 'true')).toEqual(DONE);
    expect(seen).toHaveLength(2);
  });

  test.each([
    ['the call', {}, { maxWaitMs: 0 }],
    ['the client', { maxWaitMs: 0 }, {}],
  ])('fails at once when %s turns the wait off', async (_who, options, call) => {
    const { fetch, seen } = scriptedFetch(busy());
    const client = new SvcClient({ baseUrl: 'https://svc.test', fetch, ...options });
    await expect(client.sandboxes.exec('vm_1', 'true', call)).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(1);
  });

  test('fails at once when the wait would be longer than allowed', async () => {
    const { client, seen } = clientOf(json(429, PROBLEM, { 'retry-after': '3600' }));
    await expect(client.sandboxes.list()).rejects.toMatchObject({ retryAfterSeconds: 3600 });
    expect(seen).toHaveLength(1);
  });

  test('does not repeat a command when it does not say when', async () => {
    const { client, seen } = clientOf(json(429, PROBLEM));
    await expect(client.sandboxes.exec('vm_1', 'true')).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(1);
  });

  test('ends the wait when the signal aborts', async () => {
    const stop = new AbortController();
    const { client, seen } = clientOf(json(429, PROBLEM, { 'retry-after': '50' }));
    const call = client.sandboxes.exec('vm_1', 'true', { signal: stop.signal });
    call.catch(() => undefined);
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    const reason = new Error('changed my mind');
    stop.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test('fails an upload of a stream, which has been read', async () => {
    const { client, seen } = clientOf(busy());
    const upload = client.sandboxes.files.write('vm_1', '/tmp/x', streamOf(['x']));
    await expect(upload).rejects.toThrow(SvcError);
    expect(seen).toHaveLength(1);
  });

  test('is waited for by an upload of bytes', async () => {
    const { client, seen } = clientOf(busy(), json(200, { path: '/tmp/x', size: 1 }));
    await client.sandboxes.files.write('vm_1', '/tmp/x', 'x');
    expect(seen).toHaveLength(2);
  });
});
