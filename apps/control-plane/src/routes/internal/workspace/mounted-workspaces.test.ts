import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { chunkIdOf, deriveChunkKeys, sealChunk } from '@svc/chunks';
import type {
  ChunkUrls,
  WorkspaceChange,
  WorkspaceCommit,
  WorkspaceEntries,
  WorkspaceExtent,
  WorkspaceObjects,
} from '@svc/contract';
import { openFsObjectStore, SignedUrls } from '@svc/object-store';
import { openStore, type Store } from '@svc/store';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../../../test/harness.ts';

const KIB = 1024;
const QUOTA = 3 * KIB * KIB;
const JSON_TYPE = { 'content-type': 'application/json' };
const BYTES = { accept: 'application/octet-stream' };

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let store: Store;
let worker: WorkerDouble;
let other: WorkerDouble;
let count = 0;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_WORKSPACE_BYTES: String(QUOTA) });
  account = await harness.signUp();
  store = await openStore({
    url: harness.postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  worker = await harness.addWorker('w1', (w) => {
    w.memoryMib = 1024 * KIB;
  });
});
afterAll(async () => {
  await store?.close();
  await harness?.[Symbol.asyncDispose]();
});

const b64 = (text: string | Buffer) => Buffer.from(text).toString('base64url');
const newFlush = () => randomUUID();
const file = (path: string | Buffer, extents: WorkspaceExtent[] = []): WorkspaceChange => ({
  kind: 'file',
  path: b64(path),
  mode: 0o644,
  mtime_ms: 1_000,
  size: extents.reduce((sum, { length }) => sum + length, 0),
  extents,
});
const directory = (path: string): WorkspaceChange => ({
  kind: 'directory',
  path: b64(path),
  mode: 0o755,
  mtime_ms: 2_000,
});
const symlink = (path: string, target: string): WorkspaceChange => ({
  kind: 'symlink',
  path: b64(path),
  mode: 0o777,
  mtime_ms: 3_000,
  target: b64(target),
});
const deleted = (path: string, version: number): WorkspaceChange => ({
  kind: 'deleted',
  path: b64(path),
  version,
});

/** The worker of one sandbox of a workspace. */
function mountOf(vmId: string, as: WorkerDouble = worker) {
  const route = `/sandboxes/${vmId}/workspace`;
  const ask = async (method: string, path: string, body?: object) => {
    const init = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
    const response = await as.ask(harness.plane.url, method, route + path, init);
    const text = await response.text();
    const parsed: Record<string, unknown> = text === '' ? {} : JSON.parse(text);
    return { status: response.status, code: parsed.code, body: parsed };
  };
  const post = (path: string, body: object) => ask('POST', path, { generation: 1, ...body });
  const mount = {
    vmId,
    ask,
    post,
    stage: (flush: string, changes: WorkspaceChange[]) =>
      post(`/flushes/${flush}/changes`, { changes }),
    commit: (flush: string) => post(`/flushes/${flush}/commit`, {}),
    async flush(...changes: WorkspaceChange[]): Promise<WorkspaceCommit> {
      const flush = newFlush();
      const staged = await mount.stage(flush, changes);
      expect(staged.status, JSON.stringify(staged.body)).toBe(204);
      const committed = await mount.commit(flush);
      expect(committed.status, JSON.stringify(committed.body)).toBe(200);
      return committed.body as unknown as WorkspaceCommit;
    },
    /** Stores a chunk as a worker does, and returns its id. */
    async store(content: Buffer): Promise<string> {
      const { body } = await ask('GET', '/chunk-secret?generation=1');
      const keys = deriveChunkKeys(Buffer.from(String(body.secret), 'base64'));
      const id = chunkIdOf(content, keys);
      const sealed = await sealChunk(content, id, keys);
      const chunks = [{ id, stored_bytes: sealed.length }];
      const announced = await post('/chunks/uploads', { chunks });
      const [target] = (announced.body as unknown as ChunkUrls).chunks;
      if (target !== undefined) {
        const init = { method: 'PUT', body: new Uint8Array(sealed) };
        expect((await fetch(new URL(target.url, harness.plane.url), init)).status).toBe(200);
        expect((await post('/chunks/uploaded', { ids: [id] })).status).toBe(204);
      }
      return id;
    },
    async file(path: string | Buffer, content: Buffer): Promise<WorkspaceChange> {
      return file(path, [{ id: await mount.store(content), length: content.length }]);
    },
    async entries(query = ''): Promise<WorkspaceEntries> {
      const answer = await ask('GET', `/entries?generation=1${query}`);
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      return answer.body as unknown as WorkspaceEntries;
    },
    /** The paths of all entries, with their versions. */
    async versions(): Promise<Record<string, number>> {
      const { entries } = await mount.entries();
      return Object.fromEntries(
        entries.map(({ path, version }) => [Buffer.from(path, 'base64url').toString(), version]),
      );
    },
    paths: async () => Object.keys(await mount.versions()),
  };
  return mount;
}

/**
 * Makes a sandbox with a workspace. Customers cannot ask for one before workers mount them, so the placement is changed
 * afterwards.
 */
async function newMount(scope?: string, owner = account, as?: WorkerDouble) {
  count += 1;
  const app = scope ?? `app-${count}`;
  const vmId = await harness.create(owner.key);
  const workspace = JSON.stringify({ workspace: { app_id: app, capset_id: 'c' } });
  await harness.sql.query(
    `update sandboxes set placement = (placement::jsonb || $2::jsonb)::json, worker_id = $3
     where vm_id = $1`,
    [vmId, workspace, (as ?? worker).id],
  );
  return { ...mountOf(vmId, as), app, ...customerOf(app, owner) };
}

/** The customer's view of a workspace. */
function customerOf(app: string, owner = account) {
  const route = `/v1/workspaces/${app}/c`;
  const call = (method: string, path: string, headers: Record<string, string> = {}) =>
    harness.call(method, route + path, { key: owner.token, headers });
  return {
    call,
    files: async () => (await call('GET', '')).body.files as { path: string; size: number }[],
    usage: async () => (await call('GET', '/usage')).body,
    read: (path: string, headers: Record<string, string> = {}) =>
      call('GET', `/files/${path}`, { ...BYTES, ...headers }),
    async upload(path: string, content: string): Promise<void> {
      const { body } = await call('PUT', `/files/${path}`);
      expect((await fetch(String(body.url), { method: 'PUT', body: content })).status).toBe(200);
    },
  };
}

/** The numbers of chunks of a workspace. */
const chunksOf = async (app: string) => {
  const { rows } = await harness.sql.query<{ used: number; unused: number }>(
    `select (count(*) filter (where unused_since is null))::int as used,
       (count(*) filter (where unused_since is not null))::int as unused
     from workspace_chunks join workspaces using (workspace_id) where app_id = $1`,
    [app],
  );
  return rows[0];
};
/** As if all unused chunks had been so for long. */
const removeUnused = () => store.workspaceChunks.removeUnused(-1, 1_000);

describe('a flush', () => {
  test('stores files, directories and links, which another sandbox then sees', async () => {
    const one = await newMount();
    const content = randomBytes(1000);
    const shared = await one.store(content);
    const { version } = await one.flush(
      directory('dir'),
      file('dir/a', [{ id: shared, length: 600 }]),
      file('dir/b', [{ id: shared, offset: 600, length: 400 }]),
      file('empty'),
      symlink('link', '../outside'),
    );
    const two = await newMount(one.app);
    const { entries, next } = await two.entries();
    expect(next).toBeUndefined();
    expect(entries).toEqual([
      { ...directory('dir'), version },
      { ...file('dir/a', [{ id: shared, length: 600 }]), version },
      { ...file('dir/b', [{ id: shared, offset: 600, length: 400 }]), version },
      { ...file('empty'), version },
      { ...symlink('link', '../outside'), version },
    ]);
    expect(await two.store(content)).toBe(shared);
    expect(await one.files()).toMatchObject([
      { path: 'dir/a', size: 600 },
      { path: 'dir/b', size: 400 },
      { path: 'empty', size: 0 },
    ]);
    expect(await one.usage()).toEqual({ total_size_mib: 1000 / KIB ** 2, file_count: 3 });
    expect((await one.read('dir/b')).text).toBe(content.subarray(600).toString());
  });

  test('is invisible before its commit, and has the same result when it is repeated', async () => {
    const mount = await newMount();
    const flush = newFlush();
    const change = await mount.file('a', Buffer.from('content'));
    expect((await mount.stage(flush, [change])).status).toBe(204);
    expect((await mount.stage(flush, [change])).status).toBe(204);
    expect(await mount.paths()).toEqual([]);
    const [first, second] = await Promise.all([mount.commit(flush), mount.commit(flush)]);
    expect(first).toMatchObject({ status: 200, body: { refused_count: 0, refused: [] } });
    expect(second.body).toEqual(first.body);
    expect((await mount.commit(flush)).body).toEqual(first.body);
    // A late page changes nothing.
    const late = await mount.stage(flush, [file('late')]);
    expect(late).toMatchObject({ status: 409, code: 'workspace_flush_closed' });
    expect(await mount.versions()).toEqual({ a: first.body.version });
  });

  test('cannot bring back older content when a newer one has begun', async () => {
    const mount = await newMount();
    const [older, newer] = [newFlush(), newFlush()];
    await mount.stage(older, [await mount.file('a', Buffer.from('old'))]);
    await mount.stage(newer, [await mount.file('a', Buffer.from('newest'))]);
    for (const call of [mount.commit(older), mount.stage(older, [file('b')])]) {
      expect(await call).toMatchObject({ status: 409, code: 'workspace_flush_closed' });
    }
    expect((await mount.commit(newer)).status).toBe(200);
    expect((await mount.commit(older)).status).toBe(409);
    expect((await mount.read('a')).text).toBe('newest');
    expect((await mount.commit(newFlush())).code).toBe('workspace_flush_closed');
  });

  test('names only chunks that are stored, and otherwise stages nothing', async () => {
    const mount = await newMount();
    const flush = newFlush();
    const unknown = randomBytes(32).toString('base64url');
    const answer = await mount.stage(flush, [
      directory('d'),
      file('a', [{ id: unknown, length: 1 }]),
    ]);
    expect(answer).toMatchObject({ status: 404, code: 'file_not_found' });
    expect((await mount.commit(flush)).code).toBe('workspace_flush_closed');
    expect(await mount.paths()).toEqual([]);
  });

  test.each([
    ...['/a', 'a/', 'a//b', '.', '..', 'a/../b', '../a', 'a\0b', 'x'.repeat(256)],
    `${'a/'.repeat(2047)}ab`,
  ])('refuses the path %j', async (path) => {
    const mount = await newMount('paths');
    const answer = await mount.stage(newFlush(), [file(path)]);
    expect(answer.status).toBe(400);
    expect(await mount.paths()).toEqual([]);
    await harness.call('DELETE', `/v1/sandboxes/${mount.vmId}`, { key: account.key });
  });

  test('refuses contents that do not fit their files or chunks', async () => {
    const mount = await newMount();
    const id = await mount.store(Buffer.from('abc'));
    const bad: WorkspaceChange[][] = [
      [{ ...file('a', [{ id, length: 3 }]), size: 4 } as WorkspaceChange],
      [file('a', [{ id, offset: 1, length: KIB * KIB }])],
      [file('a'), file('a')],
      [symlink('a', 'x\0y')],
    ];
    for (const changes of bad) {
      expect(await mount.stage(newFlush(), changes)).toMatchObject({
        status: 400,
        code: 'validation_failed',
      });
    }
  });

  test('takes names in any encoding', async () => {
    const mount = await newMount();
    const path = Buffer.from([0x66, 0xff, 0xfe, 0x2f, 0xe9]);
    await mount.flush(await mount.file(path, Buffer.from('bytes')), file('ü'));
    const listed = await mount.files();
    const encoded = b64(path);
    expect(listed).toEqual([
      { path: path.toString(), path_base64: encoded, size: 5, modified: expect.any(String) },
      { path: 'ü', size: 0, modified: expect.any(String) },
    ]);
    expect((await mount.read(`?path_base64=${encoded}`)).text).toBe('bytes');
    expect((await mount.read(`a?path_base64=${encoded}`)).body.code).toBe('workspace_path_invalid');
    const removed = await mount.call('DELETE', `/files/?path_base64=${encoded}`);
    expect(removed.body).toEqual({ status: 'deleted' });
    expect(await mount.paths()).toEqual(['ü']);
  });

  test('leaves a tree, whatever it changes', async () => {
    const mount = await newMount();
    const reasons = (commit: WorkspaceCommit) =>
      commit.refused.map(({ path, reason }) => [Buffer.from(path, 'base64url').toString(), reason]);
    const first = await mount.flush(file('a'), file('a/b'), symlink('l', 'x'), file('l/b/c'));
    expect(reasons(first)).toEqual([
      ['a/b', 'not_a_directory'],
      ['l/b/c', 'not_a_directory'],
    ]);
    expect(reasons(await mount.flush(file('a/b'), file('a-b'), file('d/e/f')))).toEqual([
      ['a/b', 'not_a_directory'],
    ]);
    expect(reasons(await mount.flush(file('d'), file('d/e'), symlink('d/e/f', 'y')))).toEqual([
      ['d', 'not_empty'],
      ['d/e', 'not_empty'],
    ]);
    // With what is below, a directory can be replaced, and a file by a directory.
    const versions = await mount.versions();
    const replaced = await mount.flush(
      deleted('d/e/f', versions['d/e/f'] ?? 0),
      file('d'),
      directory('a'),
      file('a/b'),
    );
    expect(replaced.refused).toEqual([]);
    expect(await mount.paths()).toEqual(['a', 'a-b', 'a/b', 'd', 'l']);
  });

  test('takes what fits into the quota, the smallest first, and frees what it deletes', async () => {
    const owner = await harness.signUp();
    const mount = await newMount(undefined, owner);
    const hole = (path: string, length: number) => file(path, [{ length }]);
    const first = await mount.flush(hole('a', QUOTA - 10), hole('b', 8), hole('c', QUOTA));
    expect(first).toMatchObject({
      refused_count: 1,
      refused: [{ path: b64('c'), reason: 'quota_exceeded' }],
    });
    const second = await mount.flush(hole('d', 3), deleted('b', first.version));
    expect(second.refused).toEqual([]);
    expect(await mount.usage()).toMatchObject({ file_count: 2 });
    expect((await mount.flush(hole('d', 11), hole('a', 1))).refused).toEqual([]);
    expect((await mount.usage()).total_size_mib).toBeCloseTo(12 / KIB ** 2);
  });
});

describe('two sandboxes on one workspace', () => {
  test('lose nothing that neither of them deleted', async () => {
    const one = await newMount();
    const start = await one.flush(file('changed'), file('kept'), file('dir/old'));
    const two = await newMount(one.app);
    await two.flush(await two.file('changed', Buffer.from('by two')), file('dir/new'));
    const { version } = start;
    const commit = await one.flush(
      deleted('changed', version),
      deleted('dir/old', version),
      deleted('kept', version),
      deleted('gone', version),
      directory('dir'),
    );
    expect(commit.refused).toEqual([{ path: b64('changed'), reason: 'changed' }]);
    expect(await one.paths()).toEqual(['changed', 'dir', 'dir/new']);
    // A directory stays while another sandbox's file is in it.
    const kept = await one.flush(deleted('dir', commit.version));
    expect(kept.refused).toEqual([{ path: b64('dir'), reason: 'not_empty' }]);
    expect((await one.read('changed')).text).toBe('by two');
  });

  test('replace each other’s files: the last finished flush wins', async () => {
    const one = await newMount();
    const two = await newMount(one.app);
    const [first, last] = [newFlush(), newFlush()];
    await one.stage(first, [await one.file('a', Buffer.from('one'))]);
    await two.stage(last, [await two.file('a', Buffer.from('two'))]);
    await two.commit(last);
    await one.commit(first);
    expect((await one.read('a')).text).toBe('one');
  });

  test('flush at the same time', async () => {
    const one = await newMount();
    const two = await newMount(one.app);
    const contents = await Promise.all(
      Array.from({ length: 8 }, (_, index) => one.file(`f${index}`, Buffer.from(`c${index}`))),
    );
    const rounds = [one, two, one, two].map(async (mount, round) => {
      const order = round % 2 === 0 ? contents : contents.toReversed();
      // The flushes of one sandbox may close each other.
      const flush = newFlush();
      const staged = await mount.stage(flush, [...order]);
      expect([204, 409]).toContain(staged.status);
      expect([200, 409]).toContain((await mount.commit(flush)).status);
    });
    await Promise.all(rounds);
    const { file_count } = await one.usage();
    const { rows } = await harness.sql.query(
      `select size_bytes::int, file_count, entry_count,
         (select count(*)::int from workspace_files f where f.workspace_id = w.workspace_id) as files,
         (select sum(size_bytes)::int from workspace_files f where f.workspace_id = w.workspace_id) as bytes
       from workspaces w where app_id = $1`,
      [one.app],
    );
    expect(rows).toEqual([{ size_bytes: 16, file_count: 8, entry_count: 8, files: 8, bytes: 16 }]);
    expect(file_count).toBe(8);
  });
});

describe('chunks', () => {
  test('stay while a staged change or a file names them, and no longer', async () => {
    const mount = await newMount();
    const chunks = () => chunksOf(mount.app);
    const flush = newFlush();
    const change = await mount.file('a', Buffer.from('x'));
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    await mount.stage(flush, [change]);
    await removeUnused();
    expect(await chunks()).toEqual({ used: 1, unused: 0 });
    await mount.commit(flush);
    await mount.flush({ ...change, path: b64('copy') } as WorkspaceChange);
    await mount.call('DELETE', '/files/a');
    expect(await chunks()).toEqual({ used: 1, unused: 0 });
    await mount.upload('copy', 'plain');
    expect((await mount.read('copy')).text).toBe('plain');
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    // A refused change, and a flush that is never committed, give up theirs as well.
    await mount.flush(file('f'));
    await mount.flush({ ...change, path: b64('f/a') } as WorkspaceChange);
    await mount.stage(newFlush(), [change]);
    await mount.stage(newFlush(), [directory('d')]);
    expect(await chunks()).toEqual({ used: 0, unused: 1 });
    await removeUnused();
    expect(await mount.stage(newFlush(), [change])).toMatchObject({ code: 'file_not_found' });
  });

  test('of a race between a flush and the removal are used, or missing', async () => {
    const mount = await newMount();
    let staged = 0;
    for (let round = 0; round < 10; round += 1) {
      const change = await mount.file(`r${round}`, Buffer.from(`r${round}`));
      const flush = newFlush();
      const [answer] = await Promise.all([mount.stage(flush, [change]), removeUnused()]);
      expect([204, 404]).toContain(answer.status);
      if (answer.status !== 204) continue;
      expect((await mount.commit(flush)).status).toBe(200);
      staged += 1;
    }
    expect(await chunksOf(mount.app)).toMatchObject({ used: staged });
    for (const { path } of await mount.files()) expect((await mount.read(path)).text).toBe(path);
  });
});

describe('a worker', () => {
  test('reaches only the workspaces of its own sandboxes', async () => {
    other = await harness.addWorker('w2');
    const mount = await newMount();
    const stranger = await harness.signUp();
    const foreign = await newMount(mount.app, stranger, other);
    await mount.flush(await mount.file('secret', Buffer.from('s')));
    expect(await foreign.paths()).toEqual([]);
    const plain = await harness.create(account.key);
    const attempts = [
      mountOf(mount.vmId, other),
      mountOf(plain),
      mountOf(`vm_${'0'.repeat(32)}`),
      mountOf('vm_1'),
    ];
    const flush = newFlush();
    await mount.stage(flush, [file('staged')]);
    for (const attempt of attempts) {
      const answers = await Promise.all([
        attempt.ask('GET', '/entries?generation=1'),
        attempt.ask('GET', '/chunk-secret?generation=1'),
        attempt.post('/chunks/missing', { ids: [randomBytes(32).toString('base64url')] }),
        attempt.post('/objects/downloads', { paths: [b64('secret')] }),
        attempt.stage(newFlush(), [file('x')]),
        attempt.commit(flush),
      ]);
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 404, code: 'sandbox_not_found' });
      }
    }
    // The flush of another sandbox, even with its id.
    expect((await foreign.commit(flush)).code).toBe('workspace_flush_closed');
    expect((await foreign.stage(flush, [file('x')])).code).toBe('workspace_flush_closed');
    const stale = await mount.post('/flushes/x/commit', { generation: 2 });
    expect(stale.status).toBe(400);
    expect(await mount.post(`/flushes/${flush}/commit`, { generation: 2 })).toMatchObject({
      status: 409,
      code: 'stale_generation',
    });
    const chunks = (await mount.entries()).entries.flatMap((entry) =>
      entry.kind === 'file' ? (entry.extents ?? []) : [],
    );
    expect(
      await foreign.post('/chunks/downloads', { ids: chunks.map(({ id }) => id) }),
    ).toMatchObject({ status: 404, code: 'file_not_found' });
  });

  test('may flush for an hour after the end of the sandbox', async () => {
    const mount = await newMount();
    const end = (ago: string) =>
      harness.sql.query(
        `update sandboxes set state = 'destroyed', end_reason = 'deleted', ended_at = now() - $2::interval where vm_id = $1`,
        [mount.vmId, ago],
      );
    await end('59 minutes');
    await mount.flush(file('a'));
    await end('61 minutes');
    expect((await mount.ask('GET', '/entries?generation=1')).code).toBe('sandbox_not_found');
  });

  test('sees what customers uploaded, and gets it', async () => {
    const mount = await newMount();
    await mount.upload('dir/up', 'uploaded');
    const { entries } = await mount.entries();
    expect(entries).toEqual([
      expect.objectContaining({ path: b64('dir/up'), kind: 'file', mode: 0o644, size: 8 }),
    ]);
    expect(entries[0]).not.toHaveProperty('extents');
    const { body } = await mount.post('/objects/downloads', { paths: [b64('dir/up'), b64('no')] });
    const { objects } = body as unknown as WorkspaceObjects;
    expect(objects).toMatchObject([{ path: b64('dir/up'), version: entries[0]?.version, size: 8 }]);
    const url = new URL(objects[0]?.url ?? '', harness.plane.url);
    const part = await fetch(url, { headers: { range: 'bytes=2-3' } });
    expect([part.status, await part.text()]).toEqual([206, 'lo']);
    await mount.flush(await mount.file('dir/up', Buffer.from('saved')));
    expect((await mount.post('/objects/downloads', { paths: [b64('dir/up')] })).body).toEqual({
      objects: [],
    });
  });

  test('gets entries in pages', async () => {
    const mount = await newMount();
    await mount.flush(...Array.from({ length: 7 }, (_, index) => file(`p${index}`)));
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await mount.entries(`&limit=3${after === undefined ? '' : `&after=${after}`}`);
      expect(page.entries.length).toBeLessThanOrEqual(3);
      seen.push(...page.entries.map(({ path }) => Buffer.from(path, 'base64url').toString()));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(['p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6']);
  });
});

describe('a customer', () => {
  test('reads a saved file in whole, in ranges and with holes, also by a URL', async () => {
    const mount = await newMount();
    const parts = [randomBytes(1000), randomBytes(3000), randomBytes(500)] as const;
    const [first, second, third] = [
      await mount.store(parts[0]),
      await mount.store(parts[1]),
      await mount.store(parts[2]),
    ];
    const hole = 200_000;
    await mount.flush(
      file('big', [
        { id: first, length: 1000 },
        { length: hole },
        { id: second, offset: 100, length: 2900 },
        { id: third, length: 500 },
      ]),
    );
    const whole = Buffer.concat([parts[0], Buffer.alloc(hole), parts[1].subarray(100), parts[2]]);
    const { url } = (await mount.call('GET', '/files/big')).body;
    const read = async (headers: Record<string, string> = {}) => {
      const response = await fetch(String(url), { headers });
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const { response, bytes } = await read();
    expect(bytes.equals(whole)).toBe(true);
    expect(response.headers.get('content-disposition')).toBe('attachment');
    const etag = response.headers.get('etag') ?? '';
    const ranges = [
      [0, 0],
      [990, 1010],
      [999, 201_100],
      [204_000, 204_399],
    ] as const;
    for (const [start, last] of ranges) {
      const part = await read({ range: `bytes=${start}-${last}`, 'if-range': etag });
      expect(part.response.status).toBe(206);
      expect(part.bytes.equals(whole.subarray(start, last + 1)), `${start}-${last}`).toBe(true);
    }
    expect((await read({ range: 'bytes=-5' })).bytes.equals(whole.subarray(-5))).toBe(true);
    const beyond = await mount.read('big', { range: `bytes=${whole.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([
      416,
      `bytes */${whole.length}`,
    ]);
    expect((await fetch(`${url}0`)).status).toBe(403);
    // New content has another tag, and the URL leads to it no more.
    await mount.flush(await mount.file('big', Buffer.from('new')));
    expect((await mount.read('big', { range: 'bytes=1-', 'if-range': etag })).text).toBe('new');
    expect((await read()).response.status).toBe(404);
  });

  test('gets no bytes of a damaged chunk', async () => {
    const mount = await newMount();
    await mount.flush(await mount.file('a', randomBytes(100)));
    const { rows } = await harness.sql.query<{ object_key: string }>(
      `select object_key from workspace_chunks join workspaces using (workspace_id) where app_id = $1`,
      [mount.app],
    );
    const objects = await openFsObjectStore({
      directory: join(harness.dataDir, 'objects'),
      urls: new SignedUrls(Buffer.alloc(32), () => ''),
    });
    for (const { object_key: key } of rows) {
      const body = Buffer.alloc(60);
      await objects.put(key, body, { size: body.length, signal: AbortSignal.timeout(60_000) });
    }
    expect((await mount.read('a')).body.code).toBe('internal_error');
  });

  test('neither sees nor breaks directories and links', async () => {
    const mount = await newMount();
    const { version } = await mount.flush(directory('d'), symlink('l', 'x'), file('f'));
    expect(await mount.files()).toMatchObject([{ path: 'f' }]);
    for (const path of ['d', 'l']) {
      expect((await mount.read(path)).body.code).toBe('workspace_file_not_found');
      expect((await mount.call('DELETE', `/files/${path}`)).status).toBe(404);
    }
    expect((await mount.call('PUT', '/files/d')).body.code).toBe('workspace_path_conflict');
    expect((await mount.call('PUT', '/files/l/x')).body.code).toBe('workspace_path_conflict');
    await mount.upload('d/x', 'x');
    expect((await mount.files()).map(({ path }) => path)).toEqual(['d/x', 'f']);
    expect(await mount.versions()).toMatchObject({ d: version, 'd/x': version + 1 });
    expect((await mount.call('DELETE', '')).body).toEqual({ status: 'deleted' });
    expect(await mount.paths()).toEqual([]);
  });
});
