import { randomBytes } from 'node:crypto';
import type { WorkspaceChange, WorkspaceCommit, WorkspaceObjects } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import {
  b64,
  deleted,
  directory,
  file,
  newFlush,
  symlink,
} from '../../../../test/workspace-changes.ts';
import { useWorkspaceLab, WORKSPACE_QUOTA } from '../../../../test/workspace-lab.ts';

const KIB = 1024;
const lab = useWorkspaceLab();

describe('a flush', () => {
  test('stores files, directories and links, which another sandbox then sees', async () => {
    const one = await lab().newMount();
    const content = randomBytes(1000);
    const shared = await one.store(content);
    const { version } = await one.flush(
      directory('dir'),
      file('dir/a', [{ id: shared, length: 600 }]),
      file('dir/b', [{ id: shared, offset: 600, length: 400 }]),
      file('empty'),
      symlink('link', '../outside'),
    );
    const two = await lab().newMount(one.app);
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
    const mount = await lab().newMount();
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
    const mount = await lab().newMount();
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
    const mount = await lab().newMount();
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
    const mount = await lab().newMount('paths');
    const answer = await mount.stage(newFlush(), [file(path)]);
    expect(answer.status).toBe(400);
    expect(await mount.paths()).toEqual([]);
    await lab().harness.call('DELETE', `/v1/sandboxes/${mount.vmId}`, { key: lab().account.key });
  });

  test('refuses contents that do not fit their files or chunks', async () => {
    const mount = await lab().newMount();
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
    const mount = await lab().newMount();
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
    const mount = await lab().newMount();
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
    const owner = await lab().harness.signUp();
    const mount = await lab().newMount(undefined, owner);
    const hole = (path: string, length: number) => file(path, [{ length }]);
    const first = await mount.flush(
      hole('a', WORKSPACE_QUOTA - 10),
      hole('b', 8),
      hole('c', WORKSPACE_QUOTA),
    );
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
    const one = await lab().newMount();
    const start = await one.flush(file('changed'), file('kept'), file('dir/old'));
    const two = await lab().newMount(one.app);
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
    const one = await lab().newMount();
    const two = await lab().newMount(one.app);
    const [first, last] = [newFlush(), newFlush()];
    await one.stage(first, [await one.file('a', Buffer.from('one'))]);
    await two.stage(last, [await two.file('a', Buffer.from('two'))]);
    await two.commit(last);
    await one.commit(first);
    expect((await one.read('a')).text).toBe('one');
  });

  test('flush at the same time', async () => {
    const one = await lab().newMount();
    const two = await lab().newMount(one.app);
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
    const { rows } = await lab().harness.sql.query(
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

describe('a worker', () => {
  test('reaches only the workspaces of its own sandboxes', async () => {
    const other = await lab().harness.addWorker('w2');
    const mount = await lab().newMount();
    const stranger = await lab().harness.signUp();
    const foreign = await lab().newMount(mount.app, stranger, other);
    await mount.flush(await mount.file('secret', Buffer.from('s')));
    expect(await foreign.paths()).toEqual([]);
    const plain = await lab().harness.create(lab().account.key);
    const attempts = [
      lab().mountOf(mount.vmId, other),
      lab().mountOf(plain),
      lab().mountOf(`vm_${'0'.repeat(32)}`),
      lab().mountOf('vm_1'),
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
    const mount = await lab().newMount();
    const end = (ago: string) =>
      lab().harness.sql.query(
        `update sandboxes set state = 'destroyed', end_reason = 'deleted', ended_at = now() - $2::interval where vm_id = $1`,
        [mount.vmId, ago],
      );
    await end('59 minutes');
    await mount.flush(file('a'));
    await end('61 minutes');
    expect((await mount.ask('GET', '/entries?generation=1')).code).toBe('sandbox_not_found');
  });

  test('sees what customers uploaded, and gets it', async () => {
    const mount = await lab().newMount();
    await mount.upload('dir/up', 'uploaded');
    const { entries } = await mount.entries();
    expect(entries).toEqual([
      expect.objectContaining({ path: b64('dir/up'), kind: 'file', mode: 0o644, size: 8 }),
    ]);
    expect(entries[0]).not.toHaveProperty('extents');
    const { body } = await mount.post('/objects/downloads', { paths: [b64('dir/up'), b64('no')] });
    const { objects } = body as unknown as WorkspaceObjects;
    expect(objects).toMatchObject([{ path: b64('dir/up'), version: entries[0]?.version, size: 8 }]);
    const url = new URL(objects[0]?.url ?? '', lab().harness.plane.url);
    const part = await fetch(url, { headers: { range: 'bytes=2-3' } });
    expect([part.status, await part.text()]).toEqual([206, 'lo']);
    await mount.flush(await mount.file('dir/up', Buffer.from('saved')));
    expect((await mount.post('/objects/downloads', { paths: [b64('dir/up')] })).body).toEqual({
      objects: [],
    });
  });

  test('gets entries in pages', async () => {
    const mount = await lab().newMount();
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
