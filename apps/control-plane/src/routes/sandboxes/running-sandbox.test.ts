import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

const UPLOAD_LIMIT = 1_000_000;

let harness: Harness;
let key: string;
let otherKey: string;
let worker: WorkerDouble;
let vmId: string;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_UPLOAD_BYTES: String(UPLOAD_LIMIT) });
  key = (await harness.signUp()).key;
  otherKey = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
  vmId = await harness.create(key);
});

const on = (
  path: string,
  method = 'POST',
  call: Parameters<Harness['call']>[2] = {},
  id: string = vmId,
) => harness.call(method, `/v1/sandboxes/${id}${path}`, { key, ...call });

const upload = (
  path: string,
  raw: NonNullable<RequestInit['body']>,
  type = 'application/octet-stream',
) =>
  on(`/files?path=${encodeURIComponent(path)}`, 'POST', { raw, headers: { 'content-type': type } });

/** Every operation on a sandbox, with a request that would succeed. */
const OPERATIONS: [string, string, object][] = [
  ['GET', '', {}],
  ['DELETE', '', {}],
  ['POST', '/exec', { json: { command: 'true' } }],
  ['GET', '/logs', {}],
  ['GET', '/files?path=/a', {}],
  ['POST', '/files?path=/a', { raw: 'x', headers: { 'content-type': 'application/octet-stream' } }],
  ['POST', '/cancel', {}],
  ['POST', '/connect', {}],
  ['POST', '/links', { json: { port: 8080 } }],
  ['GET', '/ports/8080/', {}],
  ['POST', '/pause', {}],
  ['POST', '/resume', {}],
];

describe('ids', () => {
  test.each(OPERATIONS)(
    '%s %s: an unknown id and one of another tenant get the same 404',
    async (method, path, call) => {
      const unknown = await on(path, method, call, `vm_${'0'.repeat(32)}`);
      const foreign = await on(path, method, { ...call, key: otherKey });
      expect(unknown).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
      const { request_id: _a, ...unknownBody } = unknown.body;
      const { request_id: _b, ...foreignBody } = foreign.body;
      expect(foreignBody).toEqual(unknownBody);
    },
  );

  test.each([['%00'], ['vm_%00'], ['..%2f..'], ["'--"], ['x'.repeat(2000)], ['%F0%9F%92%A9']])(
    'the malformed id %j is 404',
    async (id) => {
      expect(await on('', 'GET', {}, id)).toMatchObject({ status: 404 });
    },
  );

  test.each(OPERATIONS)('%s %s without a credential is 401', async (method, path, call) => {
    expect(await on(path, method, { ...call, key: undefined })).toMatchObject({ status: 401 });
  });
});

describe('exec', () => {
  test('refuses an environment variable that is too long for Linux', async () => {
    const json = { command: 'true', env: { A: '字'.repeat(43_648) } };
    expect(await on('/exec', 'POST', { json })).toMatchObject({
      status: 400,
      body: { code: 'validation_failed', errors: [{ path: '/env/A' }] },
    });
  });

  test('returns the output', async () => {
    expect(
      await on('/exec', 'POST', { json: { command: 'uname -a', cwd: '/', env: { A: 'b' } } }),
    ).toMatchObject({
      status: 200,
      body: { output: 'uname -a', stdout: 'uname -a', stderr: '', exit_code: 0, truncated: false },
    });
  });

  test('streams server-sent events to a caller that accepts them', async () => {
    const answer = await on('/exec', 'POST', {
      json: { command: 'echo' },
      headers: { accept: 'text/event-stream' },
    });
    expect(answer.headers.get('content-type')).toMatch('text/event-stream');
    expect(answer.text).toMatch(/event: stdout\ndata: .*\n\nevent: exit\n/);
  });

  test('streams without a warning of a leak', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    await on('/exec', 'POST', {
      json: { command: 'echo' },
      headers: { accept: 'text/event-stream' },
    });
    expect(warnings).toEqual([]);
  });

  test.each([
    [{}],
    [{ command: '' }],
    [{ command: 7 }],
    [{ command: null }],
    [{ command: 'a\0b' }],
  ])('%j is 400', async (json) => {
    expect(await on('/exec', 'POST', { json })).toMatchObject({
      status: 400,
      body: { code: 'command_required' },
    });
  });

  test.each([['application/json'], ['text/event-stream']])(
    'a caller that leaves ends the command (%s)',
    async (accept) => {
      const controller = new AbortController();
      const call = on('/exec', 'POST', {
        json: { command: 'hang' },
        headers: { accept },
        signal: controller.signal,
      });
      const outcome = expect(call).rejects.toThrow();
      await expect.poll(() => worker.busy).toBe(1);
      controller.abort();
      await outcome;
      await expect.poll(() => worker.aborted).toEqual([vmId]);
    },
  );

  test.each([
    'guest_unresponsive',
    'too_many_execs',
    'sandbox_not_running',
    'cwd_not_found',
  ] as const)('passes the code %s of the worker on to the caller', async (code) => {
    worker.failures.set('exec', code);
    expect((await on('/exec', 'POST', { json: { command: 'x' } })).body.code).toBe(code);
    const streamed = await on('/exec', 'POST', {
      json: { command: 'x' },
      headers: { accept: 'text/event-stream' },
    });
    expect(streamed.body.code).toBe(code);
  });

  test('says when to try again if the worker refuses a command because too many run', async () => {
    worker.failures.set('exec', 'too_many_execs');
    const refused = await on('/exec', 'POST', { json: { command: 'x' } });
    expect(refused.headers.get('retry-after')).toBe('1');
  });

  test('hides internal errors of the worker from the caller', async () => {
    worker.failures.set('exec', 'validation_failed');
    expect((await on('/exec', 'POST', { json: { command: 'x' } })).body.code).toBe(
      'internal_error',
    );
    worker.failures.set('exec', 'unauthorized');
    expect((await on('/exec', 'POST', { json: { command: 'x' } })).body.code).toBe(
      'worker_unreachable',
    );
  });
});

describe('logs', () => {
  test('are empty without an agent', async () => {
    expect((await on('/logs', 'GET')).body).toEqual({
      content: '',
      truncated: false,
      total_bytes: 0,
    });
    expect((await on('/logs?bytes=99999999999', 'GET')).status).toBe(200);
  });

  test.each([
    ['lines=1&bytes=1', 400, 'log_lines_and_bytes'],
    ['lines=0', 400, 'log_count_invalid'],
    ['bytes=0', 400, 'log_count_invalid'],
    ['lines=-1', 400, 'log_count_invalid'],
    ['lines=1.5', 400, 'log_count_invalid'],
    ['bytes=many', 400, 'log_count_invalid'],
    ['stream=nope', 400, 'log_stream_unknown'],
    ['stream=stdout', 501, 'log_stream_not_implemented'],
    ['stream=all', 501, 'log_stream_not_implemented'],
  ])('%s is %i', async (query, status, code) => {
    expect(await on(`/logs?${query}`, 'GET')).toMatchObject({ status, body: { code } });
  });
});

describe('files', () => {
  test('are uploaded and downloaded with their length', async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 256));
    expect(await upload('/tmp/a b.bin', bytes)).toMatchObject({
      status: 200,
      body: { status: 'uploaded' },
    });
    expect(worker.files.get('/tmp/a b.bin')?.equals(bytes)).toBe(true);
    const response = await fetch(
      `${harness.plane.url}/v1/sandboxes/${vmId}/files?path=${encodeURIComponent('/tmp/a b.bin')}`,
      { headers: { authorization: `Bearer ${key}` } },
    );
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('content-length')).toBe('70000');
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test('are not read for HEAD', async () => {
    const headers = { authorization: `Bearer ${key}` };
    const url = `${harness.plane.url}/v1/sandboxes/${vmId}/files?path=/a`;
    expect((await fetch(url, { method: 'HEAD', headers })).status).toBe(405);
  });

  test('are uploaded without a known length', async () => {
    const body = Readable.toWeb(Readable.from([Buffer.from('he'), Buffer.from('llo')]));
    expect(await upload('/tmp/x', body as ReadableStream)).toMatchObject({ status: 200 });
    expect(worker.files.get('/tmp/x')?.toString()).toBe('hello');
  });

  const noBytes = () => ['', Readable.toWeb(Readable.from([])) as ReadableStream];

  test('are empty when the body is, with and without a length', async () => {
    for (const [n, body] of noBytes().entries()) {
      expect(await upload(`/tmp/empty-${n}`, body)).toMatchObject({ status: 200 });
      expect(worker.files.get(`/tmp/empty-${n}`)).toEqual(Buffer.alloc(0));
    }
  });

  test('reject neither bytes nor a media type with 400, with and without a length', async () => {
    for (const chunked of [false, true]) {
      const path = `/v1/sandboxes/${vmId}/files?path=/tmp/x`;
      expect(await bare(path, chunked)).toMatchObject({ status: 400, code: 'missing_body' });
    }
    expect(worker.files.has('/tmp/x')).toBe(false);
  });

  test('reject a body over the limit with 413, declared or not', async () => {
    expect(await upload('/tmp/x', Buffer.alloc(UPLOAD_LIMIT + 1))).toMatchObject({ status: 413 });
    expect(await chunked(`/v1/sandboxes/${vmId}/files?path=/tmp/x`, UPLOAD_LIMIT + 1)).toBe(413);
    expect(worker.files.has('/tmp/x')).toBe(false);
  });

  test('reject another media type with 415', async () => {
    expect(await upload('/tmp/x', '{}', 'application/json')).toMatchObject({ status: 415 });
    expect(await upload('/tmp/x', 'x', 'text/plain')).toMatchObject({ status: 415 });
    expect(await upload('/tmp/x', '', 'text/plain')).toMatchObject({ status: 415 });
  });

  test.each([
    ['', 'path_required'],
    ['?path=', 'path_required'],
    ['?path=a&path=b', 'path_required'],
    ['?path=tmp/x', 'path_not_absolute'],
    ['?path=/a/../b', 'path_traversal'],
    ['?path=/a/%2e%2e/b', 'path_traversal'],
    ['?path=/..', 'path_traversal'],
    ['?path=/a%00b', 'invalid_path'],
    [`?path=/${'x'.repeat(256)}`, 'invalid_path'],
    [`?path=${'/x'.repeat(2500)}`, 'invalid_path'],
  ])('the path of files%s is 400', async (query, code) => {
    const headers = { 'content-type': 'application/octet-stream' };
    for (const [method, call] of [
      ['GET', {}],
      ['POST', { raw: 'x', headers }],
    ] as const) {
      expect(await on(`/files${query}`, method, call)).toMatchObject({
        status: 400,
        body: { code },
      });
    }
  });

  test('may have names that contain escapes', async () => {
    for (const path of ['/a/%2e%2e/b', '/tmp/..%2fb', '/%00', '/a\\..\\b']) {
      expect(await upload(path, path)).toMatchObject({ status: 200 });
      expect((await on(`/files?path=${encodeURIComponent(path)}`, 'GET')).text).toBe(path);
      expect(worker.files.get(path)?.toString()).toBe(path);
    }
  });

  test.each([
    ['download', 'file_not_found', 404],
    ['download', 'is_directory', 400],
    ['upload', 'parent_not_found', 400],
    ['upload', 'parent_not_directory', 400],
    ['upload', 'symlink_loop', 400],
    ['upload', 'not_regular_file', 400],
    ['upload', 'is_directory', 400],
    ['upload', 'disk_full', 507],
  ] as const)(
    '%s: passes the code %s of the worker on to the caller',
    async (operation, code, status) => {
      worker.failures.set(operation, code);
      const answer =
        operation === 'upload' ? await upload('/a', 'x') : await on('/files?path=/a', 'GET');
      expect(answer).toMatchObject({ status, body: { code } });
    },
  );
});

describe('pause, resume and cancel', () => {
  test('a paused sandbox shows it, and is resumed by use', async () => {
    expect((await on('/pause')).body).toMatchObject({ vm_id: vmId, state: 'paused' });
    expect((await on('', 'GET')).body.state).toBe('paused');
    expect((await on('/exec', 'POST', { json: { command: 'x' } })).status).toBe(200);
    expect((await on('/resume')).body.state).toBe('running');
    expect((await on('', 'GET')).body.state).toBe('running');
  });

  test('cancel notifies the clients and destroys nothing', async () => {
    expect((await on('/cancel')).body).toEqual({
      vm_id: vmId,
      cancelled: false,
      reason: 'user_request',
    });
    const answer = await on('/cancel', 'POST', { json: { reason: 'timeout' } });
    expect(answer.body.reason).toBe('timeout');
    expect((await on('', 'GET')).body.state).toBe('running');
  });

  test('an unknown reason is 400; a paused sandbox is not running', async () => {
    expect(await on('/cancel', 'POST', { json: { reason: 'boredom' } })).toMatchObject({
      status: 400,
      body: { code: 'unknown_cancel_reason' },
    });
    await on('/pause');
    expect(await on('/cancel')).toMatchObject({
      status: 409,
      body: { code: 'sandbox_not_running' },
    });
  });
});

describe('an ended sandbox', () => {
  const used = OPERATIONS.filter(
    ([method, path]) => method === 'POST' || path.startsWith('/files'),
  );

  test.each(used)('%s %s is 409 while the record stays, then 404', async (method, path, call) => {
    await on('', 'DELETE');
    expect(await on(path, method, call)).toMatchObject({
      status: 409,
      body: { code: 'sandbox_not_running' },
    });
    await harness.sql.query(
      `update sandboxes set ended_at = now() - interval '15 minutes 1 second'`,
    );
    expect(await on(path, method, call)).toMatchObject({ status: 404 });
  });

  test('is 409 when its worker no longer knows it, though the ledger still lists it', async () => {
    worker.sandboxes.delete(vmId);
    expect(await on('/exec', 'POST', { json: { command: 'x' } })).toMatchObject({ status: 409 });
  });

  test('is 503 when the worker does not answer', async () => {
    await worker.stop();
    expect(await on('/exec', 'POST', { json: { command: 'x' } })).toMatchObject({
      status: 503,
      body: { code: 'worker_unreachable' },
    });
    expect(await on('/files?path=/a', 'GET')).toMatchObject({ status: 503 });
    expect(await upload('/a', 'x')).toMatchObject({ status: 503 });
  });
});

/** Sends a POST without a body and without a media type. */
async function bare(path: string, isChunked: boolean): Promise<{ status?: number; code: unknown }> {
  const request = httpRequest(harness.plane.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': '0' }),
    },
  });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const { code } = (await json(response)) as { code: unknown };
  return { status: response.statusCode ?? 0, code };
}

/** Uploads this many bytes without a declared length. Returns the status. */
async function chunked(path: string, length: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      harness.plane.url + path,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/octet-stream' },
      },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    request.on('error', reject);
    request.end(Buffer.alloc(length));
  });
}
