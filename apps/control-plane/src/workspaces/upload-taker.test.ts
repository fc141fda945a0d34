import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ObjectStore,
  ObjectStoreError,
  openFsObjectStore,
  SignedUrls,
} from '@svc/object-store';
import { createLogger, Registry } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { createLostChunksCounter } from '../objects/object-inventory.ts';
import { objectRules } from '../retention/object-rules.ts';
import { ChunkedContents } from './chunked-content.ts';
import { uploadKey } from './object-keys.ts';
import { UploadTaker } from './upload-taker.ts';
import { Workspaces } from './workspaces.ts';

const UPLOAD_BYTES = 100;
const QUOTA = { tenantBytes: 150, tenantEntries: 10, entries: 10 };
const BYTES = { uploadBytes: UPLOAD_BYTES, pendingBytes: 2 * UPLOAD_BYTES };

const signal = () => AbortSignal.timeout(30_000);
const urls = new SignedUrls([Buffer.alloc(32)], () => 'https://localhost');

let ledger: TestLedger;
let directory: string;
let objects: ObjectStore;
let workspaces: Workspaces;
let log: string[];
let scope: { tenantId: string; appId: string; capsetId: string };

beforeAll(async () => {
  ledger = await startTestLedger();
  directory = await mkdtemp(join(tmpdir(), 'svc-objects-'));
});
afterAll(async () => {
  await ledger?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(async () => {
  const { store, sql } = ledger;
  await sql.query('truncate workspaces, object_deletions cascade');
  objects = await openFsObjectStore({ directory, urls });
  scope = { tenantId: 't', appId: randomUUID(), capsetId: 'c' };
  log = [];
  const taker = new UploadTaker({
    store,
    objects,
    logger: createLogger({
      level: 'info',
      pretty: false,
      destination: { write: (line) => void log.push(line) },
    }),
    quota: QUOTA,
    limits: BYTES,
  });
  const contents = new ChunkedContents({
    store,
    objects,
    secretOf: () => Promise.reject(new Error('no file is in chunks')),
  });
  workspaces = new Workspaces({
    store,
    objects,
    taker,
    contents,
    urls,
    quota: QUOTA,
    limits: BYTES,
  });
});

/** Begins an upload without a size. Returns the key of its object, or why it is refused. */
async function begin(path: string): Promise<{ key: string } | string> {
  const uploadId = randomUUID();
  const begun = await ledger.store.workspaces.beginUpload(
    { ...scope, uploadId, path: Buffer.from(path), sizeBytes: undefined, expiresSeconds: 60 },
    { ...QUOTA, ...BYTES, openUploads: 10 },
  );
  return typeof begun === 'string' ? begun : { key: uploadKey({ ...scope, ...begun }, uploadId) };
}

/** Uploads a file, and returns the key of its object. */
async function upload(path: string, size: number): Promise<string> {
  const begun = await begin(path);
  if (typeof begun === 'string') throw new Error(begun);
  await objects.put(begun.key, Buffer.alloc(size), { size, signal: signal() });
  return begun.key;
}

const expireAll = (minutesAgo: number) =>
  ledger.sql.query('update workspace_uploads set expires_at = now() - make_interval(mins => $1)', [
    minutesAgo,
  ]);

const exists = async (key: string) => (await objects.head(key, signal())) !== undefined;

test('drops an upload that is larger than one may be, without copying it', async () => {
  const large = await upload('large', UPLOAD_BYTES + 1);
  const fits = await upload('fits', UPLOAD_BYTES);
  const copy = vi.spyOn(objects, 'copy');
  const { files } = await workspaces.files(scope, {}, signal());
  expect(files.map(({ path }) => path)).toEqual(['fits']);
  expect(copy.mock.calls.map(([from]) => from)).toEqual([fits]);
  expect([await exists(large), await exists(fits)]).toEqual([false, false]);
});

test('keeps no copy of an upload that exceeds the quota', async () => {
  await upload('a', UPLOAD_BYTES);
  await workspaces.files(scope, {}, signal());
  await upload('b', UPLOAD_BYTES);
  const copy = vi.spyOn(objects, 'copy');
  expect((await workspaces.files(scope, {}, signal())).files).toMatchObject([{ path: 'a' }]);
  const copies = copy.mock.calls.map(([, to]) => to);
  expect(copies).toHaveLength(1);
  expect(await ledger.store.objectDeletions.claim(10)).toEqual(copies);
});

test('deletes an upload that is a file, even if the request that took it is aborted', async () => {
  const key = await upload('f', 1);
  const request = new AbortController();
  const { store } = ledger;
  const takeUpload = store.workspaces.takeUpload.bind(store.workspaces);
  vi.spyOn(store.workspaces, 'takeUpload').mockImplementationOnce(async (...call) => {
    const outcome = await takeUpload(...call);
    request.abort();
    return outcome;
  });
  await workspaces.files(scope, {}, request.signal).catch(() => undefined);
  expect(await exists(key)).toBe(false);
});

test('keeps the contents of replaced files for downloads, but not more bytes than may be uploaded', async () => {
  const copy = vi.spyOn(objects, 'copy');
  for (let n = 0; n < 4; n += 1) {
    await upload('f', UPLOAD_BYTES);
    await workspaces.files(scope, {}, signal());
  }
  const [oldest] = copy.mock.calls.map(([, to]) => to);
  expect(await ledger.store.objectDeletions.claim(10)).toEqual([oldest]);
});

test('deletes a workspace although its uploads cannot be copied', async () => {
  const key = await upload('f', 1);
  vi.spyOn(objects, 'copy').mockRejectedValue(
    new ObjectStoreError('object_store_unavailable', 'the copy takes too long'),
  );
  await expect(workspaces.files(scope, {}, signal())).rejects.toThrow();
  await workspaces.delete(scope, signal());
  expect(await exists(key)).toBe(false);
  expect(await workspaces.files(scope, {}, signal())).toEqual({ files: [] });
  await expect(workspaces.delete(scope, signal())).rejects.toMatchObject({
    code: 'workspace_not_found',
  });
});

test.each([['files and uploads'], ['uploads only']])(
  'deletes a workspace with %s while the object store is away',
  async (what) => {
    if (what === 'files and uploads') {
      await upload('f', 1);
      await workspaces.files(scope, {}, signal());
    }
    const key = await upload('g', 1);
    const list = vi
      .spyOn(objects, 'list')
      .mockRejectedValue(new ObjectStoreError('object_store_unavailable', 'it is down'));
    await workspaces.delete(scope, signal());
    expect(log.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, omitted: 0 }]);
    list.mockRestore();
    expect(await workspaces.files(scope, {}, signal())).toEqual({ files: [] });
    await expireAll(25 * 60);
    await workspaces.endExpiredUploads(24 * 3_600, 10, signal());
    expect(await exists(key)).toBe(false);
  },
);

test('logs uploads that become no file at most once a minute for an account', async () => {
  for (const path of ['a', 'b']) await upload(path, UPLOAD_BYTES + 1);
  await workspaces.files(scope, {}, signal());
  expect(log.map((line) => JSON.parse(line))).toMatchObject([{ outcome: 'too_large', omitted: 0 }]);
});

test.each([
  { server: 'S3', becomes: 'a file', own: undefined, files: [{ path: 'slow' }] },
  { server: 'a control plane', becomes: 'no file', own: urls, files: [] },
])(
  'an upload to $server that ends two hours after the expiry becomes $becomes',
  async ({ own, files }) => {
    const begun = await begin('slow');
    if (typeof begun === 'string') throw new Error(begun);
    await expireAll(120);
    const lostChunks = createLostChunksCounter(new Registry());
    const logger = createLogger({ level: 'silent' });
    const parts = { store: ledger.store, objects, urls: own, workspaces, lostChunks, logger };
    const rules = objectRules(parts);
    const rule = rules.find(({ rule: { kind } }) => kind === 'workspace_uploads')?.rule;
    await rule?.remove(rule.seconds ?? 0, rule.batch, signal());
    await objects.put(begun.key, Buffer.alloc(1), { size: 1, signal: signal() });
    expect((await workspaces.files(scope, {}, signal())).files).toMatchObject(files);
  },
);

test('counts uploads that nobody completes until 65 minutes after their URLs have expired', async () => {
  for (const path of ['a', 'b']) expect(await begin(path)).toHaveProperty('key');
  await expireAll(60);
  expect(await begin('c')).toBe('too_many_uploads');
  await expireAll(66);
  expect(await begin('c')).toHaveProperty('key');
});
