import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ObjectStore,
  ObjectStoreError,
  openFsObjectStore,
  SignedUrls,
} from '@svc/object-store';
import { createLogger } from '@svc/service-kit';
import { openStore, type Store } from '@svc/store';
import { startTestPostgres, type TestPostgres } from '@svc/store/testing';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { sweepObjects } from './sweep-objects.ts';

const SESSION = randomUUID();
const logger = createLogger({ level: 'silent' });
const signal = () => AbortSignal.timeout(30_000);

let postgres: TestPostgres;
let store: Store;
let sql: pg.Client;
let directory: string;
let objects: ObjectStore;
let sweeping: AbortController;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({
    url: postgres.url,
    placement: { unreachableMs: 30_000, sandboxesPerTenant: 1 },
  });
  sql = new pg.Client({ connectionString: postgres.url });
  sql.on('error', () => undefined);
  await sql.connect();
  await sql.query(`insert into tenants (tenant_id, email) values ('t', 'a@b.c')`);
  await sql.query(
    `insert into sessions (session_id, tenant_id, status, vm_id, agent, app_id, set_id, template, vendor,
       model, secrets, user_id, expires_at)
     values ($1, 't', 'active', 'vm', 'deictic', 'a', 's', 'standard', 'openai', 'm', '{}', 'u', now())`,
    [SESSION],
  );
});
afterAll(async () => {
  await sql?.end();
  await store?.close();
  await postgres?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await sql.query('truncate session_chunks, object_deletions');
  directory = await mkdtemp(join(tmpdir(), 'svc-objects-'));
  const urls = new SignedUrls(Buffer.alloc(32), () => 'https://localhost');
  objects = await openFsObjectStore({ directory, urls });
  sweeping = new AbortController();
});
afterEach(async () => {
  sweeping.abort();
  await rm(directory, { recursive: true, force: true });
});

const keyOf = (name: string) => `sessions/${SESSION}/${name}`;
const exists = async (key: string) => (await objects.head(key, signal())) !== undefined;
const put = (key: string) => objects.put(key, Buffer.from('x'), { size: 1, signal: signal() });
/** Makes all objects so far two hours old. */
async function age(): Promise<void> {
  const past = new Date(Date.now() - 2 * 3_600_000);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await utimes(join(entry.parentPath, entry.name), past, past);
  }
}
const addChunk = (byte: number, objectKey: string) =>
  store.sessionChunks.announce(SESSION, [
    { id: Buffer.alloc(32, byte), objectKey, storedBytes: 1 },
  ]);

test('removes old objects that the ledger does not know, and only those', async () => {
  const [lost, known, young] = [keyOf('lost'), keyOf('known'), keyOf('young')];
  await addChunk(1, known);
  for (const key of [lost, known, 'workspaces/w/other']) await put(key);
  await age();
  await put(young);
  const done = sweepObjects({ store, objects, logger }, sweeping.signal);
  await expect.poll(() => exists(lost)).toBe(false);
  for (const key of [known, young, 'workspaces/w/other']) expect(await exists(key)).toBe(true);
  sweeping.abort();
  await done;
});

test('keeps the deletions that an unavailable store prevents, for a later sweep', async () => {
  const given = keyOf('given-up');
  await addChunk(1, given);
  await put(given);
  await sql.query(`update session_chunks set unused_since = now() - interval '2 hours'`);
  expect(await store.sessionChunks.removeUnused(3_600, 10)).toBe(1);
  const failed = Promise.withResolvers<void>();
  const unavailable = {
    list: objects.list.bind(objects),
    delete: async () => {
      failed.resolve();
      throw new ObjectStoreError('object_store_unavailable', 'it is down');
    },
  };
  const first = sweepObjects({ store, objects: unavailable, logger }, sweeping.signal);
  await failed.promise;
  sweeping.abort();
  await first;
  expect(await exists(given)).toBe(true);
  expect(await store.objectDeletions.next(10)).toEqual([given]);
  sweeping = new AbortController();
  const second = sweepObjects({ store, objects, logger }, sweeping.signal);
  await expect.poll(() => exists(given)).toBe(false);
  await expect.poll(() => store.objectDeletions.next(10)).toEqual([]);
  sweeping.abort();
  await second;
});
