import { randomBytes, randomUUID } from 'node:crypto';
import { LIMITS } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAwaited, lockNow } from '../../../test/awaited.ts';
import { insertTenants } from '../../../test/insert-tenants.ts';
import { startTestDatabase, type TestDatabase } from '../../../test/test-database.ts';
import type { Schema } from '../../schema.ts';
import { ChunkRepository, WORKSPACE_CHUNKS } from '../chunks/chunk-repository.ts';
import { lockWorkspace } from './locks.ts';
import type { WorkspaceChange } from './scope.ts';
import { WorkspaceRepository } from './workspace-repository.ts';

const PAGE = 1_000;
const FILES = 50_000;
const FILES_PER_CHUNK = 100;
/** Deleted, and as many replaced. */
const CHANGED = 2_000;
const FLUSH_LIMITS = { changes: 100_000, extents: 1_000_000 };
const UPLOAD_LIMITS = { openUploads: 9, uploadBytes: 1, pendingBytes: 9 };
const COMMIT_LIMITS = {
  tenantBytes: 1e12,
  tenantEntries: 5_000_000,
  entries: 500_000,
  listed: 1_000,
  graceSeconds: 3_600,
};

let database: TestDatabase;
let db: Kysely<Schema>;
let workspaces: WorkspaceRepository;
let chunks: ChunkRepository;
let scopes = 0;

beforeAll(async () => {
  database = await startTestDatabase();
  db = database.db;
  await insertTenants(db, 't');
  workspaces = new WorkspaceRepository(db);
  chunks = new ChunkRepository(db, WORKSPACE_CHUNKS);
});
afterAll(() => database?.[Symbol.asyncDispose]());

async function newWorkspace(): Promise<string> {
  scopes += 1;
  const id = await workspaces.open({ tenantId: 't', appId: `a${scopes}`, capsetId: 'c' });
  if (id === undefined) throw new Error('the tenant may have more workspaces');
  return id;
}
async function storeChunks(workspaceId: string, number: number): Promise<Buffer[]> {
  const ids = Array.from({ length: number }, () => randomBytes(32));
  const announced = ids.map((id) => ({ id, objectKey: randomUUID(), storedBytes: 1 }));
  await chunks.announce(workspaceId, announced);
  await chunks.confirm(announced.map(({ objectKey }) => objectKey));
  return ids;
}
const storeChunk = async (workspaceId: string) => (await storeChunks(workspaceId, 1))[0] as Buffer;
const file = (path: string, chunkId: Buffer, offset = 0): WorkspaceChange => ({
  path: Buffer.from(path),
  kind: 'file',
  mode: 0o644,
  mtimeMs: 0,
  sizeBytes: 1,
  target: undefined,
  extents: [{ chunkId, offset, length: 1 }],
});
const symlink = (path: string): WorkspaceChange => ({
  path: Buffer.from(path),
  kind: 'symlink',
  mode: 0o777,
  mtimeMs: 0,
  sizeBytes: 0,
  target: Buffer.from('x'),
  extents: undefined,
});
async function sizeOf(tenantId: string): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select coalesce(sum(size_bytes), 0)::int as bytes from workspaces
    where tenant_id = ${tenantId}`.execute(db);
  return rows[0]?.bytes ?? 0;
}
async function flush(
  workspaceId: string,
  changes: readonly WorkspaceChange[],
  { vmId = 'vm', limits = COMMIT_LIMITS } = {},
) {
  const named = { flushId: randomUUID(), workspaceId, vmId };
  for (let at = 0; at < changes.length; at += PAGE) {
    const page = changes.slice(at, at + PAGE);
    expect(await workspaces.stageChanges(named, page, FLUSH_LIMITS)).toBe('staged');
  }
  return workspaces.commitFlush({ ...named, tenantId: 't' }, limits);
}
async function listAll(workspaceId: string) {
  const found: { path: string; version: number }[] = [];
  for (let after = Buffer.alloc(0); ; ) {
    const page = await workspaces.listEntries(workspaceId, { after, limit: PAGE, extents: 16_384 });
    for (const { path, version } of page.entries) found.push({ path: path.toString(), version });
    const last = page.entries.at(-1);
    if (page.isLast || last === undefined) return found;
    after = Buffer.from(last.path);
  }
}

test('a commit leaves the row of the tenant to the ends of its sandboxes', async () => {
  const workspaceId = await newWorkspace();
  let committed: ReturnType<typeof flush> | undefined;
  await db.transaction().execute(async (other) => {
    await lockWorkspace(other, workspaceId);
    const named = { flushId: randomUUID(), workspaceId, vmId: 'vm' };
    committed = workspaces.commitFlush({ ...named, tenantId: 't' }, COMMIT_LIMITS);
    await expect.poll(() => isAwaited(other)).toBe(true);
    await lockNow(other, 'tenants', 't');
  });
  // Nothing was staged.
  expect(await committed).toBeUndefined();
});

describe('the workspaces of a tenant', () => {
  test('are as many as the limit allows, however many are made at once', async () => {
    await insertTenants(db, 'few');
    const few = new WorkspaceRepository(db, 3);
    const scopeOf = (index: number) => ({ tenantId: 'few', appId: `${index}`, capsetId: 'c' });
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, index) => few.open(scopeOf(index))),
    );
    expect(made.filter((id) => id !== undefined)).toHaveLength(3);
    const begin = (appId: string) =>
      few.beginUpload(
        {
          ...scopeOf(0),
          appId,
          uploadId: randomUUID(),
          path: Buffer.from('a'),
          sizeBytes: 1,
          expiresSeconds: 60,
        },
        { ...COMMIT_LIMITS, ...UPLOAD_LIMITS },
      );
    expect(await begin('another')).toBe('over_quota');
    const known = made.findIndex((id) => id !== undefined);
    expect(await few.open(scopeOf(known))).toBe(made[known]);
    expect(await begin(`${known}`)).toEqual({ workspaceId: made[known] });
  });
});

describe('flushes at the same time', () => {
  test('of several workspaces stay within the quota of their tenant', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, newWorkspace));
    const before = await sizeOf('t');
    const limits = { ...COMMIT_LIMITS, tenantBytes: before + 10 };
    const commits = await Promise.all(
      ids.map(async (workspaceId) => {
        const chunk = await storeChunk(workspaceId);
        const paths = ['a', 'b', 'c', 'd'];
        return flush(
          workspaceId,
          paths.map((path) => file(path, chunk)),
          { limits },
        );
      }),
    );
    const refused = commits.flatMap((commit) => commit?.refused ?? []);
    expect(refused.map(({ reason }) => reason)).toEqual(Array(22).fill('quota_exceeded'));
    expect(await sizeOf('t')).toBe(before + 10);
    for (const workspaceId of ids) await workspaces.removeAllFiles(workspaceId);
  });
});

describe('a flush', () => {
  test('of 50,000 files is committed, listed, replaced and deleted at once', async () => {
    const workspaceId = await newWorkspace();
    const ids = await storeChunks(workspaceId, FILES / FILES_PER_CHUNK);
    const paths = Array.from(
      { length: FILES },
      (_, index) => `packages/p${index % 500}/node_modules/lib/f${index}`,
    );
    const put = (from: number) =>
      paths.slice(from).map((path, index) => {
        const at = index + from;
        const chunk = ids[Math.floor(at / FILES_PER_CHUNK)] as Buffer;
        return file(path, chunk, at % FILES_PER_CHUNK);
      });
    const first = await flush(workspaceId, put(0));
    expect(first).toMatchObject({ refusedCount: 0 });
    const listed = await listAll(workspaceId);
    expect(listed.map(({ path }) => path)).toEqual([...paths].sort());
    const version = first?.version ?? 0;
    const second = await flush(workspaceId, [
      ...paths.slice(0, CHANGED).map((path): WorkspaceChange => {
        return { kind: 'deleted', path: Buffer.from(path), version };
      }),
      ...put(FILES - CHANGED),
    ]);
    expect(second).toMatchObject({ refusedCount: 0, version: version + 1 });
    const left = FILES - CHANGED;
    const { rows } = await sql`
      select size_bytes::int, file_count, entry_count from workspaces
      where workspace_id = ${workspaceId}`.execute(db);
    expect(rows).toEqual([{ size_bytes: left, file_count: left, entry_count: left }]);
    const { rows: unused } = await sql<{ count: number }>`
      select count(*)::int as count from workspace_chunks
      where workspace_id = ${workspaceId} and unused_since is not null`.execute(db);
    expect(unused[0]?.count).toBe(CHANGED / FILES_PER_CHUNK);
    expect(await workspaces.removeAllFiles(workspaceId)).toBe(left);
  });

  test('has at most so many changes and extents', async () => {
    const workspaceId = await newWorkspace();
    const chunk = await storeChunk(workspaceId);
    const named = { flushId: randomUUID(), workspaceId, vmId: 'vm' };
    const stage = (...changes: WorkspaceChange[]) =>
      workspaces.stageChanges(named, changes, { changes: 2, extents: 3 });
    expect(await stage(file('a', chunk), file('b', chunk))).toBe('staged');
    // Repeated changes count once.
    expect(await stage(file('a', chunk))).toBe('staged');
    expect(await stage(file('c', chunk))).toBe('too_large');
    const extent = { chunkId: chunk, offset: 0, length: 1 };
    const larger = { ...file('a', chunk), sizeBytes: 3, extents: [extent, extent, extent] };
    expect(await stage(larger as WorkspaceChange)).toBe('too_large');
    expect(await workspaces.commitFlush({ ...named, tenantId: 't' }, COMMIT_LIMITS)).toBeDefined();
    expect((await listAll(workspaceId)).map(({ path }) => path)).toEqual(['a', 'b']);
  });

  test('stores the longest path, however little it can be compressed', async () => {
    const workspaceId = await newWorkspace();
    const path = Buffer.from(randomBytes(LIMITS.storedPathBytes).map((byte) => byte || 1));
    const change = { ...file('', await storeChunk(workspaceId)), path };
    expect(await flush(workspaceId, [change])).toMatchObject({ refusedCount: 0 });
  });

  test('fills a workspace up to its limit of entries', async () => {
    const workspaceId = await newWorkspace();
    const chunk = await storeChunk(workspaceId);
    await flush(workspaceId, [file('b', chunk), file('c', chunk)]);
    const named = { flushId: randomUUID(), workspaceId, vmId: 'vm' };
    const changes = [file('a', chunk), file('c', chunk), file('d', chunk)];
    await workspaces.stageChanges(named, changes, FLUSH_LIMITS);
    const limits = { ...COMMIT_LIMITS, entries: 3, listed: 1 };
    expect(await workspaces.commitFlush({ ...named, tenantId: 't' }, limits)).toMatchObject({
      refusedCount: 1,
      refused: [{ path: Buffer.from('d').toString('base64url'), reason: 'too_many_entries' }],
    });
    expect((await listAll(workspaceId)).map(({ path }) => path)).toEqual(['a', 'b', 'c']);
  });

  test('fills all workspaces of a tenant up to its limit of entries', async () => {
    const [one, two] = [await newWorkspace(), await newWorkspace()];
    const links = ['a', 'b', 'c'].map((path) => symlink(path));
    await flush(one, links);
    const { rows } = await sql<{ entries: number }>`
      select sum(entry_count)::int as entries from workspaces where tenant_id = 't'`.execute(db);
    const limits = { ...COMMIT_LIMITS, tenantEntries: (rows[0]?.entries ?? 0) + 2 };
    const reasons = async (changes: readonly WorkspaceChange[]) =>
      (await flush(two, changes, { limits }))?.refused.map(({ reason }) => reason);
    expect(await reasons(links)).toEqual(['too_many_entries']);
    expect(
      await reasons([symlink('d'), { path: Buffer.from('a'), kind: 'deleted', version: 2 }]),
    ).toEqual([]);
    expect((await listAll(two)).map(({ path }) => path)).toEqual(['b', 'd']);
    const file = { sizeBytes: 0, modifiedAt: new Date() };
    const upload = {
      tenantId: 't',
      appId: `a${scopes}`,
      capsetId: 'c',
      sizeBytes: 0,
      expiresSeconds: 60,
    };
    const begin = (path: string, tenantEntries: number, uploadId = randomUUID()) =>
      workspaces
        .beginUpload(
          { ...upload, uploadId, path: Buffer.from(path) },
          { ...limits, tenantEntries, ...UPLOAD_LIMITS },
        )
        .then((begun) => ({ begun, uploadId }));
    expect(await begin('e', limits.tenantEntries)).toMatchObject({ begun: 'over_quota' });
    // Begun when there was room.
    const { uploadId } = await begin('e', limits.tenantEntries + 1);
    const taken = { ...file, tenantId: 't', workspaceId: two, uploadId, objectKey: randomUUID() };
    expect(await workspaces.takeUpload(taken, limits)).toBe('over_quota');
  });

  test('that nobody commits gives up what it has staged', async () => {
    const workspaceId = await newWorkspace();
    const chunk = await storeChunk(workspaceId);
    const named = { flushId: randomUUID(), workspaceId, vmId: 'vm' };
    await workspaces.stageChanges(named, [file('a', chunk)], FLUSH_LIMITS);
    expect(await workspaces.removeAbandonedFlushes(3_600, 10)).toBe(0);
    await sql`update workspace_flushes set touched_at = now() - interval '2 hours'
      where workspace_id = ${workspaceId}`.execute(db);
    expect(await workspaces.removeAbandonedFlushes(3_600, 10)).toBe(1);
    expect(
      await workspaces.commitFlush({ ...named, tenantId: 't' }, COMMIT_LIMITS),
    ).toBeUndefined();
    const { rows } = await sql`
      select from workspace_extents where workspace_id = ${workspaceId}`.execute(db);
    expect(rows).toEqual([]);
    expect(await chunks.removeUnused(-1, 10)).toBeGreaterThan(0);
  });
});

describe('a page of entries', () => {
  test('ends with the file that has too many extents for it', async () => {
    const workspaceId = await newWorkspace();
    const chunk = await storeChunk(workspaceId);
    await flush(
      workspaceId,
      ['a', 'b', 'c'].map((path) => file(path, chunk)),
    );
    const page = await workspaces.listEntries(workspaceId, {
      after: Buffer.alloc(0),
      limit: 10,
      extents: 2,
    });
    expect(page.isLast).toBe(false);
    expect(page.entries.map(({ path }) => path.toString())).toEqual(['a', 'b']);
  });
});
