import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start({ uploadBytes: 1000 });
});

afterAll(() => harness[Symbol.asyncDispose]());

describe('files', () => {
  const OCTETS = { 'content-type': 'application/octet-stream' };
  const files = (id: string, path: string) =>
    `/sandboxes/${id}/files?path=${encodeURIComponent(path)}`;
  const put = async (
    id: string,
    path: string,
    body: Buffer | null,
    headers: Record<string, string> = OCTETS,
  ) => {
    const response = await harness.call('POST', files(id, path), { body, headers });
    return { status: response.statusCode, body: await response.body.json() };
  };

  it('uploads and downloads bytes unchanged', async () => {
    const id = await harness.create();
    const bytes = Buffer.from([0, 255, 10, 128]);
    expect(await put(id, '/tmp/x', bytes)).toEqual({ status: 200, body: { status: 'uploaded' } });
    const response = await harness.call('GET', files(id, '/tmp/x'));
    expect(response.headers).toMatchObject({
      'content-length': '4',
      'content-type': 'application/octet-stream',
    });
    expect(Buffer.from(await response.body.arrayBuffer())).toEqual(bytes);
  });

  it.each([
    ['/missing/x', 400, 'parent_not_found'],
    ['/file/x', 400, 'parent_not_directory'],
    ['/loop', 400, 'symlink_loop'],
    ['/full', 507, 'disk_full'],
    ['/a/../b', 400, 'path_traversal'],
    ['a', 400, 'path_not_absolute'],
    ['', 400, 'path_required'],
  ])('responds to an upload to %j with %i %s', async (path, status, code) => {
    const id = await harness.create();
    expect(await put(id, path, Buffer.from('x'))).toMatchObject({ status, body: { code } });
  });

  it.each([
    ['/none', 404, 'file_not_found'],
    ['/', 400, 'is_directory'],
  ])('responds to a download of %j with %i %s', async (path, status, code) => {
    const id = await harness.create();
    const response = await harness.call('GET', files(id, path));
    expect(response.statusCode).toBe(status);
    expect(await response.body.json()).toMatchObject({ code });
  });

  it('uploads an empty file', async () => {
    const id = await harness.create();
    for (const [path, body] of [
      ['/null', null],
      ['/empty', Buffer.alloc(0)],
    ] as const) {
      expect(await put(id, path, body)).toMatchObject({ status: 200 });
      expect(harness.host.vmOf(id).files.get(path)).toEqual(Buffer.alloc(0));
    }
  });

  it('downloads a file of unknown size without a length', async () => {
    const id = await harness.create();
    harness.host.vmOf(id).files.set('/proc/version', Buffer.from('Linux'));
    const response = await harness.call('GET', files(id, '/proc/version'));
    expect(response.headers).not.toHaveProperty('content-length');
    expect(await response.body.text()).toBe('Linux');
  });

  it('refuses a missing body, another media type and a body that is too large', async () => {
    const id = await harness.create();
    expect(await put(id, '/x', null, {})).toMatchObject({ body: { code: 'missing_body' } });
    const text = { 'content-type': 'text/plain' };
    expect(await put(id, '/x', Buffer.from('x'), text)).toMatchObject({ status: 415 });
    expect(await put(id, '/x', Buffer.alloc(1001))).toMatchObject({ status: 413 });
    expect(harness.host.vmOf(id).files.has('/x')).toBe(false);
  });

  it('limits a body of unannounced length', async () => {
    const id = await harness.create();
    async function* body() {
      for (let part = 0; part < 20; part += 1) yield Buffer.alloc(100);
    }
    const { Readable } = await import('node:stream');
    const response = await harness.call('POST', files(id, '/x'), {
      body: Readable.from(body()),
      headers: OCTETS,
    });
    expect(response.statusCode).toBe(413);
    await response.body.dump();
    expect(harness.host.vmOf(id).files.has('/x')).toBe(false);
  });

  it('leaves no file behind when the sender disconnects', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    const upload = vm.upload.bind(vm);
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    vm.upload = (...args) => {
      begun.resolve();
      return upload(...args).finally(ended.resolve);
    };
    const sender = new AbortController();
    const { Readable } = await import('node:stream');
    const body = new Readable({ read() {} });
    body.push('half');
    body.on('error', () => undefined);
    const call = harness.call('POST', files(id, '/half'), {
      body,
      headers: OCTETS,
      signal: sender.signal,
    });
    const outcome = expect(call).rejects.toThrow();
    await begun.promise;
    sender.abort();
    await outcome;
    await ended.promise;
    expect(vm.files.has('/half')).toBe(false);
    expect(await harness.exec(id, { command: 'true' })).toMatchObject({ status: 200 });
  });
});
