import { randomBytes } from 'node:crypto';
import { readdir, utimes } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { LIMITS } from '@svc/contract';
import { type ObjectStore, openFsObjectStore, SignedUrls } from '@svc/object-store';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, Harness } from '../../../test/harness.ts';

const QUOTA = 4000;

type Account = Awaited<ReturnType<Harness['signUp']>>;

let harness: Harness;
let objects: ObjectStore;
let owner: Account;
let count = 0;
const signal = () => AbortSignal.timeout(60_000);

beforeAll(async () => {
  harness = await Harness.start({
    SVC_LIMIT_WORKSPACE_BYTES: String(QUOTA),
    SVC_LIMIT_UPLOAD_BYTES: String(QUOTA * 10),
  });
  objects = await openFsObjectStore({
    directory: join(harness.dataDir, 'objects'),
    urls: new SignedUrls([Buffer.alloc(32)], () => ''),
  });
  owner = await harness.signUp();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

/** A workspace that no other test uses. */
function newWorkspace(account = owner) {
  count += 1;
  const route = `/v1/workspaces/app-${count}/default`;
  const call = (method: string, path: string, headers: Record<string, string> = {}) =>
    harness.call(method, `${route}${path}`, { key: account.token, headers });
  const fileRoute = (path: string) => `/files/${path.split('/').map(encodeURIComponent).join('/')}`;
  return {
    route,
    list: (query = '') => call('GET', query),
    usage: async () => (await call('GET', '/usage')).body,
    get: (path: string, headers = {}) => call('GET', fileRoute(path), headers),
    bytes: (path: string, headers = {}) =>
      call('GET', fileRoute(path), { accept: 'application/octet-stream', ...headers }),
    begin: (path: string, query = '') => call('PUT', fileRoute(path) + query),
    remove: (path: string) => call('DELETE', fileRoute(path)),
    removeAll: () => call('DELETE', ''),
    raw: call,
    async put(path: string, content: string): Promise<void> {
      const begun = await call('PUT', `${fileRoute(path)}?size=${Buffer.byteLength(content)}`);
      expect(begun.status, begun.text).toBe(200);
      expect((await send(begun, content)).status).toBe(200);
    },
    async paths(query = ''): Promise<unknown[]> {
      const { body } = await call('GET', query);
      return (body.files as { path: string }[]).map(({ path }) => path);
    },
  };
}

/** PUTs content to the URL of an answer. */
function send({ body }: Answer, content: string): Promise<Response> {
  return fetch(String(body.url), { method: 'PUT', body: content });
}

/** PUTs `size` bytes of a stream to the URL of an answer. Returns the status. */
function sendStream({ body }: Answer, content: Readable, size: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { 'content-length': size };
  const request = httpRequest(String(body.url), { method: 'PUT', headers }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  });
  request.once('error', reject);
  content.pipe(request);
  return promise;
}

/** The number of uploads in progress. */
async function incoming(): Promise<number> {
  return (await readdir(join(harness.dataDir, 'objects/incoming'))).length;
}

async function objectKeys(): Promise<string[]> {
  const page = await objects.list({ prefix: 'workspaces/', limit: 1000 }, signal());
  return page.objects.map(({ key }) => key);
}

describe('a file of a workspace', () => {
  test('appears when its upload is complete, with its size, time and bytes', async () => {
    const workspace = newWorkspace();
    const begun = await workspace.begin('dir/a b ü.txt');
    expect(begun.body).toMatchObject({ url: expect.any(String), expires_in: 900 });
    expect(await workspace.paths()).toEqual([]);
    expect((await workspace.get('dir/a b ü.txt')).body.code).toBe('workspace_file_not_found');
    await send(begun, 'hello');
    const { body } = await workspace.list();
    expect(body).toEqual({
      files: [{ path: 'dir/a b ü.txt', size: 5, modified: expect.stringMatching(/Z$/) }],
    });
    const url = await workspace.get('dir/a b ü.txt');
    expect(url.body).toMatchObject({ expires_in: 900 });
    expect(await (await fetch(String(url.body.url))).text()).toBe('hello');
    expect((await workspace.bytes('dir/a b ü.txt')).text).toBe('hello');
    const part = await workspace.bytes('dir/a b ü.txt', { range: 'bytes=1-2' });
    expect([part.status, part.text]).toEqual([206, 'el']);
    const beyond = await workspace.bytes('dir/a b ü.txt', { range: 'bytes=5-' });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */5']);
  });

  test('is served as bytes only to whoever prefers them', async () => {
    const workspace = newWorkspace();
    await workspace.put('a', 'x');
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, application/octet-stream',
    ]) {
      expect((await workspace.get('a', { accept })).body.url, accept).toBeDefined();
    }
    const bytes = await workspace.get('a', { accept: 'application/octet-stream, */*' });
    expect(bytes.text).toBe('x');
    expect(bytes.headers.get('content-disposition')).toBe('attachment');
  });

  test('is replaced as a whole', async () => {
    const workspace = newWorkspace();
    await workspace.put('a', 'old content');
    const old = await workspace.get('a');
    await workspace.put('a', 'new');
    expect((await workspace.bytes('a')).text).toBe('new');
    expect(await workspace.usage()).toEqual({ total_size_mib: 3 / 1024 ** 2, file_count: 1 });
    // A download that began before goes on.
    expect(await (await fetch(String(old.body.url))).text()).toBe('old content');
  });

  test('cannot be changed by another use of its URL', async () => {
    const workspace = newWorkspace();
    const begun = await workspace.begin('a');
    await send(begun, 'one');
    expect(await workspace.paths()).toEqual(['a']);
    expect((await send(begun, 'two, which is longer')).status).toBe(403);
    expect((await workspace.bytes('a')).text).toBe('one');
    expect((await workspace.list()).body.files).toMatchObject([{ size: 3 }]);
  });

  test('leaves no bytes of another use of its URL that ends later', async () => {
    const workspace = newWorkspace();
    const begun = await workspace.begin('a');
    await send(begun, 'one');
    const late = new PassThrough();
    late.write('la');
    const sent = sendStream(begun, late, 4);
    await expect.poll(incoming).toBe(1);
    expect(await workspace.paths()).toEqual(['a']);
    late.end('te');
    expect(await sent).toBe(200);
    const id = new URL(String(begun.body.url)).pathname.split('/').at(-1);
    expect((await objectKeys()).filter((key) => key.endsWith(String(id)))).toEqual([]);
    expect((await workspace.bytes('a')).text).toBe('one');
  });

  test('has the last of several uploads to its URL, and the bytes of one of them at a time', async () => {
    const workspace = newWorkspace();
    const begun = await workspace.begin('a');
    const first = new PassThrough();
    first.write('fi');
    const broken = sendStream(begun, first, 5);
    await expect.poll(incoming).toBe(1);
    const second = new PassThrough();
    second.write('sec');
    const sent = sendStream(begun, second, 6);
    expect(await broken).toBe(403);
    await expect.poll(incoming).toBe(1);
    second.end('ond');
    expect(await sent).toBe(200);
    expect((await workspace.bytes('a')).text).toBe('second');
  });

  test('is deleted with its bytes', async () => {
    const workspace = newWorkspace();
    await workspace.put('a', 'x');
    await workspace.put('b', 'y');
    const { url } = (await workspace.get('a')).body;
    expect((await workspace.remove('a')).body).toEqual({ status: 'deleted' });
    expect((await workspace.remove('a')).body.code).toBe('workspace_file_not_found');
    expect(await workspace.paths()).toEqual(['b']);
    await harness.restart();
    await expect
      .poll(
        async () =>
          (await fetch(String(url).replace(/:\d+\//, `:${new URL(harness.plane.url).port}/`)))
            .status,
      )
      .toBe(404);
    expect((await workspace.bytes('b')).text).toBe('y');
  });
});

describe('a workspace', () => {
  test('lists pages in the order of the bytes of the paths, by prefix', async () => {
    const workspace = newWorkspace();
    const paths = ['a', 'a-b', 'b/1', 'b/2', 'b/3', 'bc', 'é', '😀'];
    for (const path of paths.toReversed()) await workspace.put(path, path);
    expect(await workspace.paths()).toEqual(paths);
    const seen: unknown[] = [];
    let query = '?limit=3';
    for (let pages = 0; pages < 5; pages += 1) {
      const { body } = await workspace.list(query);
      seen.push(...(body.files as { path: string }[]).map(({ path }) => path));
      if (body.next_token === undefined) break;
      query = `?limit=3&token=${body.next_token}`;
    }
    expect(seen).toEqual(paths);
    expect(await workspace.paths('?prefix=b/')).toEqual(['b/1', 'b/2', 'b/3']);
    expect(await workspace.paths('?prefix=b')).toEqual(['b/1', 'b/2', 'b/3', 'bc']);
    expect((await workspace.list('?limit=4&prefix=b')).body.next_token).toBeUndefined();
  });

  test.each(['limit=0', 'limit=101', 'limit=x', 'token=', 'token=*'])(
    'refuses %s',
    async (query) => {
      expect((await newWorkspace().list(`?${query}`)).status).toBe(400);
    },
  );

  test('is listed with its size while it has files', async () => {
    const account = await harness.signUp();
    const list = async () =>
      (await harness.call('GET', '/v1/workspaces', { key: account.token })).body.workspaces;
    const workspace = newWorkspace(account);
    await workspace.begin('never-uploaded');
    expect(await list()).toEqual([]);
    await workspace.put('a', 'abc');
    await workspace.put('b', 'de');
    const [, , , appId] = workspace.route.split('/');
    expect(await list()).toEqual([{ app_id: appId, capset_id: 'default', size_bytes: 5 }]);
    expect(await workspace.usage()).toEqual({ total_size_mib: 5 / 1024 ** 2, file_count: 2 });
    expect((await workspace.removeAll()).body).toEqual({ status: 'deleted' });
    expect(await list()).toEqual([]);
    expect(await workspace.usage()).toEqual({ total_size_mib: 0, file_count: 0 });
    expect((await workspace.removeAll()).body.code).toBe('workspace_not_found');
  });

  test('that was deleted takes no upload that began before', async () => {
    const workspace = newWorkspace();
    await workspace.put('a', 'x');
    const begun = await workspace.begin('late');
    await workspace.removeAll();
    await send(begun, 'late');
    expect(await workspace.paths()).toEqual([]);
  });

  test.each([
    ['in the same second', '05.999', 'upload'],
    ['in an earlier second', '06.000', 'older'],
  ])('has the content of an upload that arrived %s: %s, %s', async (_when, changed, content) => {
    const workspace = newWorkspace();
    await workspace.put('f', 'older');
    await workspace.paths();
    const root = join(harness.dataDir, 'objects');
    const uploads = async () =>
      (await readdir(root, { recursive: true })).filter((path) => /\/uploads\/.*\.o$/.test(path));
    const before = await uploads();
    await workspace.put('f', 'upload');
    const [upload = ''] = (await uploads()).filter((path) => !before.includes(path));
    // S3 tells whole seconds.
    const uploadedAt = new Date('2026-01-01T00:00:05Z');
    await utimes(join(root, upload), uploadedAt, uploadedAt);
    await harness.sql.query(`update workspace_files set modified_at = $1`, [
      `2026-01-01T00:00:${changed}Z`,
    ]);
    expect((await workspace.bytes('f')).text).toBe(content);
  });

  test('that does not exist is empty', async () => {
    const workspace = newWorkspace();
    expect((await workspace.list()).body).toEqual({ files: [] });
    expect(await workspace.usage()).toEqual({ total_size_mib: 0, file_count: 0 });
    expect((await workspace.removeAll()).status).toBe(404);
    expect((await workspace.get('a')).status).toBe(404);
    expect((await workspace.remove('a')).status).toBe(404);
  });

  test.each([
    '..%2Fsecret',
    'a%2F..%2F..%2Fb',
    '%2Fetc%2Fpasswd',
    'a%2F%2Fb',
    'a%2F',
    'a%2F.%2Fb',
    'a%00b',
    'x'.repeat(256),
  ])('refuses the path %s', async (path) => {
    const workspace = newWorkspace();
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status, body } = await workspace.raw(method, `/files/${path}`);
      expect([status, body.code], method).toEqual([400, 'workspace_path_invalid']);
    }
  });

  test('refuses an upload to a longer path than can be stored', async () => {
    const workspace = newWorkspace();
    const directory = Array.from({ length: 10 }, () => randomBytes(120).toString('hex')).join('/');
    const longest = `${directory}/`.padEnd(LIMITS.storedPathBytes, 'x');
    await workspace.put(longest, 'x');
    expect(await workspace.paths()).toEqual([longest]);
    const { status, body } = await workspace.begin(`${longest}x`);
    expect([status, body.code]).toEqual([400, 'workspace_path_invalid']);
  });

  test.each(['..%2Fa/default', '.a/default', 'a/b%2Fc', 'a/%00', `a/${'x'.repeat(129)}`])(
    'refuses the scope %s',
    async (scope) => {
      const { status } = await harness.call('GET', `/v1/workspaces/${scope}`, { key: owner.token });
      expect(status).toBe(400);
    },
  );

  test('has no file inside another', async () => {
    const workspace = newWorkspace();
    await workspace.put('a/b', 'x');
    expect(await workspace.paths()).toEqual(['a/b']);
    for (const path of ['a', 'a/b/c']) {
      expect((await workspace.begin(path)).body.code).toBe('workspace_path_conflict');
    }
    const [outer, inner] = [await workspace.begin('c'), await workspace.begin('c/d')];
    await send(outer, 'first');
    expect(await workspace.paths()).toEqual(['a/b', 'c']);
    await send(inner, 'second');
    expect(await workspace.paths()).toEqual(['a/b', 'c']);
  });

  test('is invisible to other accounts', async () => {
    const workspace = newWorkspace();
    await workspace.put('secret', 'mine');
    const { token } = await harness.signUp();
    const theirs = (method: string, path: string) =>
      harness.call(method, workspace.route + path, { key: token });
    expect((await theirs('GET', '')).body).toEqual({ files: [] });
    expect((await theirs('GET', '/files/secret')).status).toBe(404);
    expect((await theirs('DELETE', '/files/secret')).status).toBe(404);
    expect((await theirs('DELETE', '')).status).toBe(404);
    expect((await theirs('GET', '/usage')).body.file_count).toBe(0);
    await send(await theirs('PUT', '/files/secret'), 'theirs');
    expect((await theirs('GET', '')).body.files).toMatchObject([{ size: 6 }]);
    expect((await workspace.bytes('secret')).text).toBe('mine');
  });
});

describe('the quota', () => {
  test('refuses uploads that are announced to exceed it, and others when they are complete', async () => {
    const account = await harness.signUp();
    const [one, two] = [newWorkspace(account), newWorkspace(account)];
    await one.put('a', 'x'.repeat(QUOTA - 10));
    expect(await one.paths()).toEqual(['a']);
    expect((await two.begin('b', '?size=11')).body.code).toBe('workspace_quota_exceeded');
    const [b, c] = [await two.begin('b'), await two.begin('c', '?size=10')];
    await send(b, 'x'.repeat(11));
    expect(await two.paths()).toEqual([]);
    await send(c, 'x'.repeat(10));
    expect(await two.paths()).toEqual(['c']);
    expect((await two.begin('d')).body.code).toBe('workspace_quota_exceeded');
    await one.remove('a');
    await two.put('d', 'x'.repeat(100));
    expect(await two.paths()).toEqual(['c', 'd']);
  });

  test('holds for uploads that complete at the same time', async () => {
    const account = await harness.signUp();
    const workspace = newWorkspace(account);
    const size = Math.ceil(QUOTA / 4);
    const begun = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => workspace.begin(`f${n}`)));
    await Promise.all(begun.map((answer) => send(answer, 'x'.repeat(size))));
    expect((await workspace.paths()).length).toBe(4);
  });

  test('refuses a single upload beyond the limit of uploads', async () => {
    const { body } = await newWorkspace().begin('a', `?size=${QUOTA * 10 + 1}`);
    expect(body.code).toBe('payload_too_large');
  });

  test('bounds the bytes of uploads that are not files yet', async () => {
    const account = await harness.signUp();
    const workspace = newWorkspace(account);
    // Ten of the largest size that may be uploaded, which is what one without a size counts as.
    const begun = await Promise.all(Array.from({ length: 10 }, (_, n) => workspace.begin(`f${n}`)));
    expect(begun.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const refused = await workspace.begin('g', '?size=1');
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_uploads']);
    // The objects of expired uploads are still there.
    await harness.sql.query(
      `update workspace_uploads set expires_at = now() - interval '1 minute'
       from workspaces where tenant_id = $1 and workspaces.workspace_id = workspace_uploads.workspace_id`,
      [account.tenantId],
    );
    expect((await workspace.begin('g')).status).toBe(429);
  });

  test('refuses none of many uploads without a size, one after the other', async () => {
    const workspace = newWorkspace(await harness.signUp());
    for (let n = 0; n < 25; n += 1) {
      const begun = await workspace.begin(`f${n}`);
      expect(begun.status, begun.text).toBe(200);
      expect((await send(begun, 'x')).status).toBe(200);
    }
    expect(await workspace.usage()).toMatchObject({ file_count: 25 });
  });

  test('limits the uploads that are open', async () => {
    const account = await harness.signUp();
    const workspace = newWorkspace(account);
    await workspace.begin('a');
    await harness.sql.query(
      `insert into workspace_uploads (upload_id, workspace_id, path, expires_at)
       select gen_random_uuid(), workspace_id, 'x', now() + interval '1 hour'
       from workspaces, generate_series(1, 999) where tenant_id = $1`,
      [account.tenantId],
    );
    const refused = await workspace.begin('b');
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_uploads']);
    expect(refused.headers.get('retry-after')).toBe('60');
  });
});

describe('several control planes', () => {
  test('make an upload one file, and leave no object behind', async () => {
    const workspace = newWorkspace();
    const other = await harness.startAnother();
    try {
      const names = ['a', 'b', 'c', 'd'];
      for (const name of names) await workspace.put(name, name);
      const planes = [harness.plane, other, harness.plane, other];
      const lists = await Promise.all(
        planes.map((plane) => harness.call('GET', workspace.route, { key: owner.token, plane })),
      );
      for (const { body } of lists) {
        expect((body.files as unknown[]).length).toBe(4);
      }
      expect(await workspace.usage()).toMatchObject({ file_count: 4 });
    } finally {
      await other.close();
    }
    await harness.sql.query('update object_deletions set due_at = now()');
    await harness.restart();
    const used = await harness.sql.query<{ object_key: string }>(
      'select object_key from workspace_files',
    );
    await expect
      .poll(async () => (await objectKeys()).filter((key) => key.includes('/files/')).toSorted())
      .toEqual(used.rows.map(({ object_key: key }) => key).toSorted());
  });

  test('give no file an object that is being deleted', async () => {
    const workspace = newWorkspace();
    await workspace.put('a', 'x');
    // As if the reservation of the copy ended and another control plane claimed it before the commit.
    await harness.sql.query(`
      create function claim_at_once() returns trigger language plpgsql as $$
        begin new.claimed := true; return new; end $$;
      create trigger claim_at_once before insert on object_deletions
        for each row execute function claim_at_once()`);
    try {
      expect(await workspace.paths()).toEqual([]);
    } finally {
      await harness.sql.query(
        'drop trigger claim_at_once on object_deletions; drop function claim_at_once',
      );
    }
  });
});
